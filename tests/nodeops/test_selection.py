"""Which pods are evicted, and which a budget protects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.nodeops.selection import choose, held_back

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


WEB_PODS = [
    msgspec.convert(
        {"metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"}}},
        Pod,
    )
    for name in ("a", "b")
]


@pytest.mark.parametrize(
    ("namespace", "selector", "allowed", "said"),
    [
        (
            "shop",
            {"matchLabels": {"app": "web"}},
            0,
            "PodDisruptionBudget guard allows 0 of 2 evictions",
        ),
        ("shop", {}, 1, "PodDisruptionBudget guard allows 1 of 2 evictions"),
        ("shop", {"matchLabels": {"app": "web"}}, 2, None),
        ("shop", {"matchLabels": {"app": "db"}}, 0, None),
        (
            "shop",
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
            0,
            "PodDisruptionBudget guard allows 0 of 2 evictions",
        ),
        ("other", {}, 0, None),
        ("shop", None, 0, None),
    ],
)
def test_what_a_budget_lets_go(
    namespace: str, selector: dict[str, Any] | None, allowed: int, said: str | None
) -> None:
    body = {
        "metadata": {"name": "guard", "namespace": namespace},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }
    found = held_back(WEB_PODS, [msgspec.convert(body, PodDisruptionBudget)])
    assert found == ({} if said is None else {"a": said, "b": said})
