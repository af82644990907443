"""A cyberspace says what it means, or which field is wrong and what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate import catalog
from kvestigate.cybernet.loading import load_cyberspace
from kvestigate.cybernet.registry import exposable, offered
from kvestigate.cybernet.spec import HttpListen, listen_address, read_cyberspace
from kvestigate.cybernet.templates import TEMPLATES, Template, cyberspace
from kvestigate.cybernet.tokens import digest
from kvestigate.errors import InputError, UsageError
from tests.cybernet.conftest import RESEARCH, changed

OPERATIONS = catalog.operations()

GIB = 1024**3


def test_everything_in_a_cyberspace_is_read() -> None:
    space = read_cyberspace(RESEARCH)
    assert space.metadata.name == "research-agents"
    assert space.listen.http == HttpListen("127.0.0.1", 0)
    assert space.listen.mcp_stdio
    assert [it.identity for it in space.tokens] == ["ada", "bob"]
    assert space.tokens[0].tags == ("gpu",)
    assert space.hosts.allow_names == ("node-1", "node-2")
    assert space.hosts.require.min_free_memory == 800 * GIB
    assert space.workspace.max_tmpfs_size == 500 * GIB
    assert space.workspace.max_gpu == 4
    assert space.quotas.max_total_active_memory == 5 * 1024 * GIB
    assert space.audit.include_denials


def test_what_is_left_out_allows_nothing_and_limits_nothing() -> None:
    least = {key: RESEARCH[key] for key in ("apiVersion", "kind", "metadata", "audit")}
    space = read_cyberspace(least)
    assert space.allow == ()
    assert space.tokens == ()
    assert space.listen.http is None
    assert space.hosts.allow_names is None
    assert not space.hosts.require
    assert space.workspace.cordon_node_forbidden
    assert space.quotas.max_total_active_gpu is None


@pytest.mark.parametrize(
    ("path", "value", "said", "hint"),
    [
        ("apiVersion", "v1", "apiVersion: 'v1'", "kvestigate.cybernet/v1"),
        ("kind", None, "kind: is missing", "Cyberspace"),
        ("metadata.name", "Not a name", "metadata.name: 'Not a name'", "research-agents"),
        ("metadata.nmae", "x", "metadata.nmae: no such field", "metadata.name"),
        ("quota", {}, "quota: no such field", "quotas"),
        ("listen.http.address", "8765", "listen.http.address: '8765'", "127.0.0.1:8765"),
        ("listen.mcp.stdio", "maybe", "listen.mcp.stdio: 'maybe'", ""),
        ("auth.tokens.0.identity", "a b", "auth.tokens[0].identity: 'a b'", "research-agent-1"),
        ("auth.tokens.0.sha256", "secret!", "auth.tokens[0].sha256", "hash-token"),
        ("auth.tokens.1.sha256", digest("token-of-ada"), "auth.tokens[1].sha256", "own"),
        ("operations.allow", "report.run", "operations.allow: 'report.run' is not a list", ""),
        ("operations.allow.1", "report.run", "operations.allow[1]: 'report.run'", "remove"),
        ("constraints.hosts.require.min_free_gpu", -1, "min_free_gpu: -1", "4"),
        ("constraints.hosts.require.min_free_cpu_cores", "x", "cpu_cores: 'x'", "80"),
        ("constraints.hosts.require.min_free_memory", "lots", "min_free_memory", "500Gi"),
        ("constraints.hosts.allow", [], "hosts.allow: no such field", "allow_names"),
        ("constraints.workspace.name_pattern", "(", "name_pattern: '('", "^agent-"),
        ("constraints.workspace.storage.allowed_modes", ["ram"], "[0]: 'ram'", "all-tmpfs"),
        ("constraints.workspace.storage.max_tmpfs_size", -1, "max_tmpfs_size: -1", "500Gi"),
        ("constraints.workspace.gpu.max_per_workspace", True, "max_per_workspace: True", "4"),
        ("quotas.max_total_active_gpus", 1, "no such field", "max_total_active_gpu"),
        ("quotas.max_total_active_gpu", 1.5, "max_total_active_gpu: 1.5", "4"),
        ("audit.path", None, "audit.path", "recorded"),
        ("audit", [1], "audit: [1] is not a mapping", ""),
    ],
)
def test_a_mistake_is_named_with_the_way_out(path: str, value: Any, said: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        read_cyberspace(changed(path, value))
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_token_in_place_of_its_hash_is_not_repeated() -> None:
    with pytest.raises(InputError) as caught:
        read_cyberspace(changed("auth.tokens.0.sha256", "kvc_very-secret"))
    assert "very-secret" not in f"{caught.value.message}{caught.value.hint}"


@settings(max_examples=50)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4))
def test_any_value_anywhere_is_read_or_refused(value: Any) -> None:
    for path in ("metadata", "listen.http", "auth.tokens", "constraints.hosts", "quotas", "audit"):
        document = changed(path, value) if value is not None else changed(path, "null")
        try:
            read_cyberspace(document)
        except UsageError as error:
            assert error.message  # noqa: PT017 - either is right


@pytest.mark.parametrize(
    ("text", "host", "port"), [("0.0.0.0:8765", "0.0.0.0", 8765), ("[::1]:0", "::1", 0)]
)
def test_an_address_is_read(text: str, host: str, port: int) -> None:
    assert listen_address(text, "x") == HttpListen(host, port)


@pytest.mark.parametrize("text", ["", ":1", "::1:80", "a:70000", "a:-1", "a:٣", "a"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        listen_address(text, "x")


@pytest.mark.parametrize("name", ["node.drain", "exec", "deploy", "jobs.submit", "debug.api"])
def test_a_cyberspace_that_lists_a_dangerous_operation_is_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        offered(["report.run", name], OPERATIONS)
    assert f"operations.allow[1]: {name!r} is reserved for operators" in caught.value.message


def test_an_unknown_operation_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(InputError) as caught:
        offered(["report.rnu"], OPERATIONS)
    assert caught.value.hint == "did you mean report.run?"


def test_operations_keep_the_order_of_the_file() -> None:
    assert list(offered(["pods", "report.run"], OPERATIONS)) == ["pods", "report.run"]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda it: it.name)
def test_every_template_is_a_cyberspace(template: Template) -> None:
    made = cyberspace(template, "pool", "127.0.0.1:1", "agent", digest("x"), "/tmp/audit.jsonl")
    space = read_cyberspace(made)
    assert set(space.allow) <= exposable(OPERATIONS).keys()


def test_a_file_is_named_in_what_is_wrong_with_it(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    with pytest.raises(InputError, match=r"space\.yaml: cannot read"):
        load_cyberspace(path, OPERATIONS)
    path.write_text("apiVersion: v2\n")
    with pytest.raises(InputError, match=r"space\.yaml: apiVersion: 'v2'"):
        load_cyberspace(path, OPERATIONS)
    path.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(InputError, match="2 documents"):
        load_cyberspace(path, OPERATIONS)
