"""`kvestigate ui` before it serves: what it refuses, and what it says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

_KUBECONFIG = """
current-context: a
contexts: [{name: a, context: {cluster: a}}]
clusters: [{name: a, cluster: {server: "http://127.0.0.1:9"}}]
"""


@pytest.mark.parametrize("listen", ["0.0.0.0:8080", "[::]:8080", "192.0.2.7:1", "console.test:80"])
def test_other_machines_are_kept_out(invoke: Invoke, home: Path, listen: str) -> None:
    (home / ".kube").mkdir()
    (home / ".kube" / "config").write_text(_KUBECONFIG)
    outcome = invoke("ui", "--no-browser", "--listen", listen)
    assert outcome.code == 2
    assert "reachable from other machines" in outcome.err
    assert "ssh -L" in outcome.err


def test_no_cluster_is_said_at_once(invoke: Invoke) -> None:
    outcome = invoke("ui", "--no-browser")
    assert outcome.code == 3
    assert "kvestigate up" in outcome.err
    assert outcome.out == ""


def test_a_context_that_is_not_there_is_said_at_once(invoke: Invoke) -> None:
    outcome = invoke("ui", "--no-browser", "--context", "nope")
    assert outcome.code == 3
    assert 'there is no context "nope"' in outcome.err
