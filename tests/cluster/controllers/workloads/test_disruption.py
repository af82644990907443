"""How many evictions a budget allows."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.controllers.workloads.disruption import decide
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from tests.cluster.controllers.builders import NOW, at, pod, view


def budget(status: Any = None, **spec: Any) -> PodDisruptionBudget:
    return view(PodDisruptionBudget, "web", spec=spec, status=status or {})


def _pods(ready: int, broken: int = 0) -> list[Pod]:
    return [pod(f"r{n}") for n in range(ready)] + [pod(f"b{n}", ready=False) for n in range(broken)]


@pytest.mark.parametrize(
    ("spec", "pods", "wanted", "expected"),
    [
        ({"minAvailable": 2}, _pods(3), 3, (3, 2, 3, 1)),
        ({"minAvailable": 2}, _pods(2), 3, (2, 2, 2, 0)),
        ({"minAvailable": "50%"}, _pods(5), 5, (5, 3, 5, 2)),
        ({"maxUnavailable": 1}, _pods(3), 3, (3, 2, 3, 1)),
        ({"maxUnavailable": 1}, _pods(2, 1), 3, (2, 2, 3, 0)),
        ({"maxUnavailable": "30%"}, _pods(4), 4, (4, 2, 4, 2)),
        ({"maxUnavailable": 0}, _pods(3), 3, (3, 3, 3, 0)),
        ({"minAvailable": 0}, [], 0, (0, 0, 0, 0)),
    ],
)
def test_budgets(spec: Any, pods: list[Pod], wanted: int, expected: tuple[int, ...]) -> None:
    status = decide(budget(**spec), pods, wanted, NOW).status
    found = (
        status.current_healthy,
        status.desired_healthy,
        status.expected_pods,
        status.disruptions_allowed,
    )
    assert found == expected


def test_an_eviction_under_way_counts_until_it_is_late() -> None:
    it = budget({"disruptedPods": {"r0": at(-20), "r1": at(-200), "gone": at()}}, minAvailable=1)
    decision = decide(it, _pods(3), 3, NOW)
    assert set(decision.status.disrupted_pods) == {"r0"}
    assert decision.status.disruptions_allowed == 1
    assert decision.pause == 100
