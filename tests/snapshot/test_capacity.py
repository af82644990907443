"""What is asked for on a node is what the scheduler would count."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.snapshot.capacity import capacities, requested_by_node
from tests.snapshot.objects import Object, as_node, as_pod, container, node, pod

SIDECAR: Any = {**container("proxy", cpu="100m"), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("pods", "requested"),
    [
        ([], {}),
        ([pod("a", container(cpu="500m"), on="n")], {"cpu": 500, "pods": 1}),
        (
            [pod("a", container(cpu="1"), container("b", cpu="250m", memory="1Ki"), on="n")],
            {"cpu": 1250, "memory": 1024, "pods": 1},
        ),
        (
            [pod("a", container(cpu="1"), on="n", initContainers=[container("i", cpu="3")])],
            {"cpu": 3000, "pods": 1},
        ),
        (
            [pod("a", container(cpu="1"), on="n", initContainers=[SIDECAR])],
            {"cpu": 1100, "pods": 1},
        ),
        (
            [pod("a", container(cpu="1"), on="n", overhead={"cpu": "50m"})],
            {"cpu": 1050, "pods": 1},
        ),
        ([pod("a", container(cpu="1"), on="n", phase="Succeeded")], {}),
        ([pod("a", container(cpu="1"), on="n", phase="Failed")], {}),
        ([pod("a", container(cpu="1"), phase="Pending")], {}),
        ([pod("a", container(cpu="1"), on="elsewhere")], {}),
        (
            [pod("a", container(gpu="2"), on="n"), pod("b", container(gpu="1"), on="n")],
            {"nvidia.com/gpu": 3, "pods": 2},
        ),
    ],
)
def test_requests_of_a_node(pods: list[Object], requested: dict[str, int]) -> None:
    (found,) = capacities([as_node(node("n", cpu="8"))], requested_by_node(map(as_pod, pods)))
    assert found.requested == requested


def test_what_is_left_and_who_may_use_it() -> None:
    cordoned = {**node("b", cpu="4"), "spec": {"unschedulable": True}}
    lost = node("c", cpu="4")
    lost["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    nodes = map(as_node, [node("a", cpu="4", memory="1Gi"), cordoned, lost])
    pods = [as_pod(pod("p", container(cpu="5", memory="1Mi"), on="a"))]
    found = capacities(nodes, requested_by_node(pods))
    assert [(it.name, it.ready, it.schedulable) for it in found] == [
        ("a", True, True),
        ("b", True, False),
        ("c", False, True),
    ]
    assert found[0].free("cpu") == -1000
    assert found[0].free("memory") == 2**30 - 2**20
    assert found[1].free("nvidia.com/gpu") == 0
