"""Who is protected from eviction."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.pods import Pod
from kvestigate.nodeops.pods import choose

DAEMON = [{"kind": "DaemonSet", "name": "d", "controller": True}]
REPLICAS = [{"kind": "ReplicaSet", "name": "r", "controller": True}]


@pytest.mark.parametrize(
    ("metadata", "phase", "reason"),
    [
        ({}, "Running", ""),
        ({"ownerReferences": REPLICAS}, "Pending", ""),
        ({"ownerReferences": DAEMON}, "Running", "managed by a DaemonSet"),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "Running", "static pod"),
        ({"deletionTimestamp": "2030-01-01T00:00:00Z"}, "Running", "already terminating"),
        ({}, "Succeeded", "completed"),
        ({}, "Failed", "completed"),
        ({"namespace": "kube-system"}, "Running", "in a system namespace"),
        ({"namespace": "kube-node-lease"}, "Running", "in a system namespace"),
    ],
)
def test_infrastructure_is_left_alone(metadata: dict[str, Any], phase: str, reason: str) -> None:
    body = {"metadata": {"name": "p", **metadata}, "status": {"phase": phase}}
    choice = choose([msgspec.convert(body, Pod)])
    assert [it.reason.startswith(reason) for it in choice.skip] == ([True] if reason else [])
    assert len(choice.evict) == (0 if reason else 1)
    if reason == "in a system namespace":
        assert choose([msgspec.convert(body, Pod)], include_system=True).skip == ()
    elif reason:
        assert choose([msgspec.convert(body, Pod)], include_system=True).evict == ()
