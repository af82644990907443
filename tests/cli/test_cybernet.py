"""`kvestigate cybernet` from the configuration to the call."""

from __future__ import annotations

import hashlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kvestigate import catalog
from kvestigate.aio.clock import WallClock
from kvestigate.client.access import AccessOptions, resolve
from kvestigate.cybernet.audit_log import AuditLog
from kvestigate.cybernet.gateway import Gateway
from kvestigate.cybernet.http import handler
from kvestigate.cybernet.loading import load_cyberspace
from tests.cli.conftest import Invoke, Start, answering, kubeconfig

OPERATIONS = catalog.operations()

TEMPLATES = ["distributed-cpu", "research-agents", "observability", "blank"]


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVESTIGATE_CYBERNET_TOKEN", raising=False)


@pytest.mark.parametrize("template", TEMPLATES)
def test_init_writes_a_file_that_can_be_served(invoke: Invoke, home: Path, template: str) -> None:
    outcome = invoke("cybernet", "init", "--name", "pool", "--template", template, "-o", "json")
    assert outcome.code == 0
    made = json.loads(outcome.out)
    path = home / "pool.yaml"
    written = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert made["token"] not in written
    assert hashlib.sha256(made["token"].encode()).hexdigest() in written
    assert load_cyberspace(path, OPERATIONS).space.metadata.name == "pool"


def test_init_shows_the_token_once_and_what_comes_next(invoke: Invoke, home: Path) -> None:
    listen = ("--listen", "0.0.0.0:9999", "--output", str(home / "x.yaml"), "--identity", "ada")
    outcome = invoke("cybernet", "init", "--name", "pool", *listen)
    assert len(re.findall(r"kvc_[\w-]{43}", outcome.out)) == 1
    assert "cybernet serve --config" in outcome.out
    assert "emit-helper http://localhost:9999" in outcome.out
    document = yaml.safe_load((home / "x.yaml").read_text())
    assert document["listen"]["http"]["address"] == "0.0.0.0:9999"
    assert document["auth"]["tokens"][0]["identity"] == "ada"


def test_init_replaces_a_file_only_by_force(invoke: Invoke, home: Path) -> None:
    assert invoke("cybernet", "init", "--name", "pool").code == 0
    before = (home / "pool.yaml").read_text()
    refused = invoke("cybernet", "init", "--name", "pool")
    assert refused.code == 2
    assert "--force" in refused.err
    assert (home / "pool.yaml").read_text() == before
    assert invoke("cybernet", "init", "--name", "pool", "--force").code == 0
    assert (home / "pool.yaml").read_text() != before


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--name", "Not A Name"], "metadata.name"),
        (["--name", "pool", "--listen", "8765"], "--listen"),
        (["--name", "pool", "--identity", "a b"], "identity"),
        (["--name", "pool", "--template", "x"], "observability"),
        (["--name", "pool", "--output", "no/such/pool.yaml"], "cannot write"),
    ],
)
def test_init_refuses_what_serve_would_refuse(
    invoke: Invoke, home: Path, more: list[str], said: str
) -> None:
    outcome = invoke("cybernet", "init", *more)
    assert outcome.code == 2
    assert said in outcome.err
    assert not list(home.glob("*.yaml"))


def test_hash_token(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = hashlib.sha256(b"abc").hexdigest()
    assert invoke("cybernet", "hash-token", "abc").out == f"{expected}\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("abc\n"))
    assert invoke("cybernet", "hash-token").out == f"{expected}\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert invoke("cybernet", "hash-token").code == 2


@pytest.mark.parametrize("verb", ["serve", "mcp-server"])
def test_a_configuration_that_is_wrong_is_named(invoke: Invoke, home: Path, verb: str) -> None:
    for outcome in (
        invoke("cybernet", "serve", "--config", "no.yaml"),
        invoke("cybernet", "mcp-server", "--config", "no.yaml"),
    ):
        assert outcome.code == 2
        assert "no.yaml: cannot read the file" in outcome.err
    path = home / "pool.yaml"
    assert invoke("cybernet", "init", "--name", "pool").code == 0
    path.write_text(path.read_text().replace("allow: []", "allow: [node.drain]"))
    outcome = invoke("cybernet", verb, "--config", str(path))
    assert outcome.code == 2
    assert "operations.allow[0]: 'node.drain' is reserved for operators" in outcome.err


@pytest.fixture
def url(invoke: Invoke, home: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cyberspace in front of a cluster that is not there."""
    made = invoke("cybernet", "init", "--name", "pool", "--template", "observability", "-o", "json")
    monkeypatch.setenv("KVESTIGATE_CYBERNET_TOKEN", json.loads(made.out)["token"])
    (home / "kubeconfig").write_text(kubeconfig("https://127.0.0.1:1"))
    access = resolve(AccessOptions(kubeconfig=str(home / "kubeconfig")), {}, None)
    loaded = load_cyberspace(home / "pool.yaml", OPERATIONS)
    audit = AuditLog(loaded.space.audit)
    gateway = Gateway(loaded.space, loaded.operations, access, audit, WallClock())
    return start(handler(gateway)).url


def test_status_shows_what_is_offered(invoke: Invoke, url: str) -> None:
    outcome = invoke("cybernet", "status", url)
    assert outcome.code == 0
    assert "report.run" in outcome.out
    assert json.loads(invoke("cybernet", "status", url, "-o", "json").out)["name"] == "pool"


def test_call_prints_the_result(invoke: Invoke, url: str) -> None:
    outcome = invoke("cybernet", "call", "report.list", "--url", url)
    assert outcome.code == 0
    assert "nodes" in {it["name"] for it in json.loads(outcome.out)["reports"]}
    shown = invoke("cybernet", "call", "report.list", "--url", url, "-o", "yaml").out
    assert yaml.safe_load(shown) == json.loads(outcome.out)


@pytest.mark.parametrize(
    ("operation", "params", "code", "said"),
    [
        ("node.drain", "{}", 4, "not allowed here"),
        ("report.run", '{"nam": "x"}', 2, "did you mean name?"),
        ("report.run", '{"name": "nodes"}', 3, "127.0.0.1:1"),
        ("report.run", "[1]", 2, "--params"),
        ("report.run", "{", 2, "--params"),
    ],
)
def test_a_call_that_fails_ends_with_the_code_of_its_failure(
    invoke: Invoke, url: str, operation: str, params: str, code: int, said: str
) -> None:
    outcome = invoke("cybernet", "call", operation, "--url", url, "--params", params)
    assert outcome.code == code
    assert said in outcome.err


def test_a_call_without_a_token_says_where_it_belongs(
    invoke: Invoke, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KVESTIGATE_CYBERNET_TOKEN")
    outcome = invoke("cybernet", "call", "report.list", "--url", url)
    assert outcome.code == 4
    assert "KVESTIGATE_CYBERNET_TOKEN" in outcome.err


@pytest.mark.parametrize(
    ("address", "code"), [("http://127.0.0.1:1", 3), ("localhost:8765", 2), ("ftp://x", 2)]
)
def test_nobody_at_the_address(invoke: Invoke, address: str, code: int) -> None:
    assert invoke("cybernet", "status", address).code == code
    assert invoke("cybernet", "emit-helper", address).code == code
    assert invoke("cybernet", "call", "pods", "--url", address).code == code


@pytest.mark.parametrize("body", [{"a": 1}, [1], b"<html>"])
def test_somebody_else_at_the_address(invoke: Invoke, start: Start, body: object) -> None:
    outcome = invoke("cybernet", "status", start(answering(200, body)).url)
    assert outcome.code == 3


def test_emit_helper_writes_a_module(invoke: Invoke, home: Path, url: str) -> None:
    target = home / "agent_helper.py"
    outcome = invoke("cybernet", "emit-helper", url, "--output", str(target))
    assert outcome.code == 0
    source = target.read_text()
    assert f'BASE_URL = "{url}"' in source
    compile(source, "agent_helper.py", "exec")
    assert invoke("cybernet", "emit-helper", url, "--output", str(target)).code == 2
    assert invoke("cybernet", "emit-helper", url).out == source


def test_init_warns_of_a_network_without_tls(invoke: Invoke, home: Path) -> None:
    warned = invoke("cybernet", "init", "--name", "pool", "--listen", "0.0.0.0:9999")
    assert "warning: 0.0.0.0" in warned.err
    assert "--tls-cert" in warned.err
    assert "warning" not in invoke("cybernet", "init", "--name", "near").err


def test_a_certificate_needs_its_key(invoke: Invoke, home: Path) -> None:
    assert invoke("cybernet", "init", "--name", "pool").code == 0
    outcome = invoke("cybernet", "serve", "--config", "pool.yaml", "--tls-cert", "cert.pem")
    assert outcome.code == 2
    assert "--tls-key was not given" in outcome.err


def test_an_authority_that_cannot_be_read_is_named(invoke: Invoke) -> None:
    outcome = invoke("cybernet", "status", "https://127.0.0.1:1", "--ca-file", "no.pem")
    assert outcome.code == 2
    assert "no.pem: cannot be read" in outcome.err


def test_serve_until_it_is_told_to_stop(invoke: Invoke, home: Path) -> None:
    listen = ("--listen", "127.0.0.1:0", "--template", "observability")
    assert invoke("cybernet", "init", "--name", "pool", *listen).code == 0
    (home / "kubeconfig").write_text(kubeconfig("https://127.0.0.1:1"))
    words = ["cybernet", "serve", "--config", "pool.yaml", "--kubeconfig", "kubeconfig"]
    command = [sys.executable, "-m", "kvestigate", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"at (http://\S+)", process.stdout.readline())
        assert found
        assert invoke("cybernet", "status", found[1]).code == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_tokens_are_made_listed_and_revoked(invoke: Invoke, home: Path) -> None:
    assert invoke("cybernet", "init", "--name", "pool").code == 0
    config = ("--config", str(home / "pool.yaml"))
    words = ("--identity", "ada", "--expires", "30d", "--tag", "gpu")
    made = invoke("cybernet", "token", "create", *config, *words, "-o", "json")
    assert made.code == 0, made.err
    token = json.loads(made.out)
    assert token["token"] not in (home / "pool.yaml").read_text()
    assert (home / "pool.yaml").stat().st_mode & 0o777 == 0o600
    listed = json.loads(invoke("cybernet", "token", "list", *config, "-o", "json").out)["tokens"]
    assert [entry["identity"] for entry in listed] == ["pool-agent", "ada"]
    assert (listed[1]["digest"], listed[1]["expired"]) == (token["sha256"][:12], False)
    assert "ada" in invoke("cybernet", "token", "list", *config).out
    gone = invoke("cybernet", "token", "revoke", *config, token["sha256"][:12])
    assert (gone.code, gone.out) == (0, f"revoked {token['sha256'][:12]} of ada\n")
    for wrong_words, said in (
        (("revoke", "--identity", "eve"), "0 tokens"),
        (("revoke",), "DIGEST"),
        (("create", "--identity", "a b"), "identity"),
        (("create", "--identity", "ada", "--expires", "soon"), "--expires"),
        (("create", "--identity", "ada", "--expires", "0s"), "--expires"),
    ):
        wrong = invoke("cybernet", "token", *wrong_words, *config)
        assert (wrong.code, said in wrong.err) == (2, True), wrong.err
    assert invoke("cybernet", "token", "revoke", "--identity", "pool-agent", *config).code == 0
    assert "No tokens" in invoke("cybernet", "token", "list", *config).out
