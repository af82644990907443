"""What is in a kubeconfig and what is wrong with it, each fault planted once."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import ConfigError
from kvestigate.kubeconfigs.analyze import analyze
from kvestigate.kubeconfigs.entries import Entries
from kvestigate.kubeconfigs.model import Analysis
from kvestigate.render.severity import Severity, at_least
from tests.client.identities import NOON, make_certificate, make_token
from tests.kubeconfigs.conftest import Json, Write, config

SERVER = {"server": "https://one:6443"}
CERTIFICATE, KEY = make_certificate("admin")
OTHER_KEY = make_certificate("other")[1]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def look(*paths: Path, path: str = "/nowhere") -> Analysis:
    return analyze(paths, {"PATH": path}, NOON)


def rules(found: Analysis) -> list[tuple[str, Severity]]:
    return [(it.rule, it.severity) for it in found.findings]


def test_nothing_is_wrong_with_a_good_one(write: Write) -> None:
    login = {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(KEY)}
    authority = {"certificate-authority-data": encoded(CERTIFICATE)}
    found = look(write(config(SERVER | authority, login)))
    assert found.findings == ()
    (context,) = found.contexts
    assert (context.name, context.current, context.server) == ("c", True, "https://one:6443")
    assert context.authentication == "client certificate"
    assert context.expires == "2031-01-01 00:00 UTC"


CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
PLUGIN = {
    "command": "no-such-plugin",
    "apiVersion": "client.authentication.k8s.io/v1",
    "interactiveMode": "Never",
}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (config({}, {"token": "t"}) | {"clusters": []}, [("dangling-name", CRITICAL)]),
        (config(SERVER) | {"current-context": "d"}, [("dangling-name", CRITICAL)]),
        (config({"server": "ftp://x"}), [("unusable", CRITICAL)]),
        ({"kind": "ConfigMap", "metadata": {"name": "a"}}, [("unusable", CRITICAL)]),
        (config({"server": "http://x"}), [("plain-http", WARNING)]),
        (config(SERVER | {"insecure-skip-tls-verify": True}), [("insecure-tls", WARNING)]),
        (config(SERVER | {"certificate-authority": "no.crt"}), [("unusable", CRITICAL)]),
        (config(SERVER | {"certificate-authority-dat": "x"}), [("unknown-field", WARNING)]),
        (config(user={"username": "u", "password": "p"}), [("password", WARNING)]),
        (config(user={"token": 5}), [("unusable", CRITICAL)]),
        (config(user={"tokenFile": "gone"}), [("unusable", CRITICAL)]),
        (config(user={"exec": PLUGIN}), [("missing-plugin", CRITICAL)]),
        (
            config(user={"exec": PLUGIN | {"arg": []}}),
            [("missing-plugin", CRITICAL), ("unknown-field", WARNING)],
        ),
        (config(user={"auth-provider": {"name": "gcp"}}), [("removed-provider", CRITICAL)]),
        (config(user={"token": make_token(expires_in=-1)}), [("expired", CRITICAL)]),
        (config(user={"token": make_token(expires_in=60)}), []),
        (
            config(
                user={
                    "client-certificate-data": encoded(CERTIFICATE),
                    "client-key-data": encoded(OTHER_KEY),
                }
            ),
            [("wrong-key", CRITICAL)],
        ),
        (config() | {"clusters": "none"}, [("unusable", CRITICAL), ("dangling-name", CRITICAL)]),
        (config() | {"preferenses": {}}, [("unknown-field", WARNING)]),
        (
            config(clusters=[*config()["clusters"], {"name": "d", "cluster": SERVER}]),
            [("unused", INFO)],
        ),
        (config(users=[*config()["users"]] * 2), [("duplicate-name", CRITICAL)]),
    ],
)
def test_a_planted_fault_is_found_and_nothing_else(
    write: Write, content: Json, found: list[tuple[str, Severity]]
) -> None:
    assert rules(look(write(content))) == found


@pytest.mark.parametrize(
    ("days", "found"), [(31, []), (29, [("expires-soon", WARNING)]), (-1, [("expired", CRITICAL)])]
)
def test_certificates_are_judged_by_the_day(write: Write, days: int, found: list[Any]) -> None:
    from datetime import UTC, datetime, timedelta

    path = write(config(SERVER | {"certificate-authority-data": encoded(CERTIFICATE)}))
    now = datetime(2031, 1, 1, tzinfo=UTC) - timedelta(days=days)
    assert rules(analyze([path], {}, now)) == found


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        (0o600, []),
        (0o640, [("readable-by-others", WARNING)]),
        (0o644, [("readable-by-others", WARNING)]),
        (0o660, [("writable-by-others", WARNING)]),
        (0o666, [("writable-by-others", CRITICAL)]),
    ],
)
def test_who_else_can_read_or_write_it(
    write: Write, mode: int, found: list[tuple[str, Severity]]
) -> None:
    path = write(config())
    path.chmod(mode)
    result = look(path)
    assert rules(result) == found
    assert all(it.command == f"chmod 600 {path}" for it in result.findings)


def test_places_and_ways_out(write: Write) -> None:
    path = write(
        """\
current-context: prud
clusters:
- {name: a, cluster: {server: "https://a"}}
contexts:
- name: prod
  context: {cluster: a, user: missing}
"""
    )
    dangling, context = look(path).findings
    assert dangling.where == f"{path}:1:18"
    assert dangling.evidence == 'there is no context "prud", but a "prod"'
    assert dangling.command == f"kubectl --kubeconfig {path} config use-context prod"
    assert (context.severity, context.where) == (WARNING, f"{path}:6:31")


def test_a_field_given_twice_is_told_with_its_line(write: Write) -> None:
    path = write("clusters:\n- name: a\n  cluster:\n    server: https://a\n    server: https://b\n")
    twice, unused = look(path).findings
    assert (twice.rule, twice.where, unused.rule) == ("duplicate-key", f"{path}:5", "unused")


def test_of_two_files_the_first_wins(write: Write) -> None:
    first = write(config({"server": "https://first"}), "a")
    second = write(config({"server": "https://second"}), "b")
    found = look(first, second, first)
    assert [it.server for it in found.contexts] == ["https://first"]
    assert found.files == (str(first), str(second))
    assert set(rules(found)) == {("duplicate-name", WARNING)}
    assert "already taken at" in found.findings[0].evidence


def test_a_broken_file_does_not_hide_the_other(write: Write) -> None:
    found = look(write("a: [", "broken"), write(config(), "good"))
    assert [it.name for it in found.contexts] == ["c"]
    assert rules(found) == [("unusable", CRITICAL)]
    assert "not YAML" in found.findings[0].evidence


def test_secrets_are_not_told(write: Write) -> None:
    user = {"token": "hunter2", "password": "hunter2", "username": "u", "tokn": "hunter2"}
    assert "hunter2" not in repr(look(write(config(user=user))))


def test_without_files_there_is_nothing_to_say(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no kubeconfig file exists"):
        look(tmp_path / "none")


def test_fail_on_counts_what_is_worse(write: Write) -> None:
    found = look(write(config(SERVER | {"insecure-skip-tls-verify": True}))).findings
    severities = [it.severity for it in found]
    assert (at_least(severities, "warning"), at_least(severities, "critical")) == (True, False)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "cluster", "user", "exec", "server", "x"]), inner
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["clusters", "users", "contexts", "kind"]), values))
def test_any_mapping_is_read_without_a_defect(content: Json) -> None:
    import json

    entries = Entries()
    entries.read(Path("x"), json.dumps(content).encode())
    assert len(entries.tops) + len(entries.problems) >= 1 or not content
