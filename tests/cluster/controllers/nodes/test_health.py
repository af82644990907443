"""Silent nodes, their taints, and how long pods bear them."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.controllers.nodes.health import (
    GRACE,
    NOT_READY,
    UNREACHABLE,
    decide,
    time_to_stay,
)
from kvestigate.kube.views.core import Node
from tests.cluster.controllers.builders import NOW, at, pod, view


def node(ready: str = "True", taints: Any = (), **more: Any) -> Node:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": at(-900)}] * bool(ready)
    conditions += [{"type": kind, "status": status} for kind, status in more.items()]
    return view(Node, "n", spec={"taints": list(taints)}, status={"conditions": conditions})


def _taints(it: Node, heard: float = NOW) -> list[tuple[str, str]]:
    return [(taint.key, taint.effect) for taint in decide(it, heard, NOW).taints]


def both(key: str) -> list[tuple[str, str]]:
    return [(key, "NoSchedule"), (key, "NoExecute")]


@pytest.mark.parametrize(
    ("it", "heard", "expected"),
    [
        (node(), NOW, []),
        (node(), NOW - GRACE, both(UNREACHABLE)),
        (node("False"), NOW, both(NOT_READY)),
        (node("Unknown"), NOW, both(UNREACHABLE)),
        (node(""), NOW, []),
        (node("", [{"key": NOT_READY, "effect": "NoSchedule"}]), NOW, [(NOT_READY, "NoSchedule")]),
        (node(""), NOW - GRACE, both(UNREACHABLE)),
        (node(taints=[{"key": NOT_READY, "effect": "NoExecute"}]), NOW, []),
        (node(taints=[{"key": "own", "effect": "NoExecute"}]), NOW, [("own", "NoExecute")]),
        (
            node(DiskPressure="True"),
            NOW,
            [("node.kubernetes.io/disk-pressure", "NoSchedule")],
        ),
    ],
    ids=[
        "well",
        "silent",
        "not ready",
        "unknown",
        "unborn",
        "born tainted",
        "never spoke",
        "recovered",
        "not ours",
        "pressure",
    ],
)
def test_taints(it: Node, heard: float, expected: list[tuple[str, str]]) -> None:
    assert _taints(it, heard) == expected


def test_a_silent_node_is_unknown_in_all_that_it_said() -> None:
    found = decide(node(MemoryPressure="False"), NOW - GRACE, NOW).conditions
    assert {each.type: each.status for each in found} == {
        "Ready": "Unknown",
        "MemoryPressure": "Unknown",
        "DiskPressure": "Unknown",
        "PIDPressure": "Unknown",
    }


def test_a_taint_keeps_its_time() -> None:
    old = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": at(-100)}
    found = decide(node("Unknown", [old]), NOW - GRACE, NOW).taints
    assert [each.time_added.timestamp() for each in found if each.time_added] == [NOW, NOW - 100]


def test_the_next_look_is_when_it_would_be_lost() -> None:
    assert decide(node(), NOW - 20, NOW).pause == GRACE - 20


def _tolerating(*tolerations: Any) -> Any:
    return pod("p", spec={"tolerations": list(tolerations)})


LOST = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": at(-100)}
ANY: dict[str, Any] = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "left"),
    [
        ([], 0.0),
        ([ANY], None),
        ([{"operator": "Exists"}], None),
        ([{**ANY, "tolerationSeconds": 300}], 200.0),
        ([{**ANY, "tolerationSeconds": 60}], 0.0),
        ([{"key": "other", "operator": "Exists"}], 0.0),
        ([{"key": UNREACHABLE, "value": "x", "effect": "NoExecute"}], 0.0),
    ],
)
def test_how_long_a_pod_stays(tolerations: Any, left: float | None) -> None:
    taints = node("Unknown", [LOST]).spec.taints
    assert time_to_stay(_tolerating(*tolerations), taints, NOW) == left
