"""Not only the mistakes we thought of: no input at all ends in a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Invoke, Outcome, kubeconfig

# The home directory and the captured output are the same for every example, and may be.
relaxed = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80
)

CONFIG: dict[str, Any] = {
    "kind": "Config",
    "apiVersion": "v1",
    "preferences": {},
    **json.loads(
        kubeconfig(
            "https://127.0.0.1:1",
            user={
                "token": "t",
                "as": "jane",
                "as-groups": ["dev"],
                "as-user-extra": {"k": ["v"]},
                "auth-provider": {"name": "oidc", "config": {"client-id": "c"}},
            },
            namespace="shop",
            **{"insecure-skip-tls-verify": True, "tls-server-name": "n", "extensions": []},
        )
    ),
}

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document, except the server: no test talks to strangers."""
    found = [path] if path and path[-1] != "server" else []
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(document)
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return changed


def assert_sentence(outcome: Outcome) -> None:
    assert outcome.code in {0, 2, 3}, outcome
    assert "this is a defect of kvestigate" not in outcome.err, outcome
    assert "Traceback" not in outcome.err
    if outcome.code:
        assert outcome.err.startswith("error: ")


@relaxed
@given(content=st.binary(max_size=200))
@example(content=b"\xff\xfe")
@example(content=b"a: &a [*a]\n")
@example(content=b"? {[}: b\n")
@example(content=b"{" * 5000)
@example(content=b"- " * 5000)
@example(content=b"!!python/object/apply:os.system ['true']\n")
def test_any_bytes_as_a_kubeconfig(invoke: Invoke, home: Path, content: bytes) -> None:
    (home / "kc").write_bytes(content)
    outcome = invoke("debug", "context", "--kubeconfig", "kc")
    assert outcome.code == 3
    assert_sentence(outcome)


@relaxed
@given(path=st.sampled_from(places(CONFIG)), value=VALUES)
def test_any_value_anywhere_in_a_kubeconfig(
    invoke: Invoke, home: Path, path: tuple[Any, ...], value: Any
) -> None:
    (home / "kc").write_text(json.dumps(replaced(CONFIG, path, value)))
    assert_sentence(invoke("debug", "context", "--kubeconfig", "kc"))


WORDS = [
    "debug",
    "context",
    "api",
    "timing",
    "exec-url",
    "completion",
    "bash",
    "json",
    "1s",
    "/version",
    "--",
    "-",
    "-n",
    "-o",
    "-c",
    "-v",
    "-ojson",
    "--as",
    "--as-group",
    "--samples",
    "--json",
    "--help",
    "--no-color",
    "--kubeconfig",
    "--context",
    "--request-timeout",
    "--version",
]

# The operating system lets no NUL through.
ANYTHING = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=10)


@relaxed
@given(args=st.lists(st.sampled_from(WORDS) | ANYTHING, max_size=7))
@example(args=["debug", "context", "--kubeconfig", "a" * 5000])
def test_any_words_on_the_command_line(invoke: Invoke, args: list[str]) -> None:
    assert_sentence(invoke(*args))
