"""How containers end, in words, and messages that are too long to be honest."""

from __future__ import annotations

import pytest

from kvestigate.health.pods import how_it_ended
from kvestigate.health.registry import findings
from kvestigate.kube.views.pods import TerminatedState
from tests.health.cluster_of import Object, cluster_of


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (1, "Error", "exit code 1 (Error)"),
        (126, "Error", "exit code 126 (Error), the command was found but cannot be executed"),
        (127, "Error", "exit code 127 (Error), the command was not found"),
        (137, "OOMKilled", "exit code 137 (OOMKilled)"),
        (137, "Error", "exit code 137 (Error), SIGKILL: killed from outside"),
        (139, "Error", "exit code 139 (Error), SIGSEGV"),
        (143, "Error", "exit code 143 (Error), SIGTERM"),
    ],
)
def test_an_exit_code_is_explained(code: int, reason: str, words: str) -> None:
    assert how_it_ended(TerminatedState(exit_code=code, reason=reason)).startswith(words)


LONG = "0/1 nodes are available: exceeded quota: , requested: , used: , limited: " * 20_000


@pytest.mark.timeout(20)
def test_a_message_of_a_megabyte_is_cut() -> None:
    unschedulable = {"type": "PodScheduled", "status": "False", "message": LONG}
    failed = {"type": "ReplicaFailure", "status": "True", "message": LONG}
    waiting = {"reason": "CreateContainerConfigError", "message": LONG}
    objects: list[Object] = [
        {"kind": "Pod", "metadata": {"name": "a"}, "status": {"conditions": [unschedulable]}},
        {"kind": "ReplicaSet", "metadata": {"name": "b"}, "status": {"conditions": [failed]}},
        {
            "kind": "Pod",
            "metadata": {"name": "c"},
            "spec": {"nodeName": "n"},
            "status": {"containerStatuses": [{"name": "m", "state": {"waiting": waiting}}]},
        },
    ]
    found = findings(cluster_of(objects))
    assert {finding.subject.name for finding in found} >= {"a", "b", "c"}
    assert max(len(finding.evidence) for finding in found) < 5000
