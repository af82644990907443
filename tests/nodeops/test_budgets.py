"""What disruption budgets would say to an eviction."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.nodeops.budgets import held_back

PODS = [
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
    found = held_back(PODS, [msgspec.convert(body, PodDisruptionBudget)])
    assert found == ({} if said is None else {"a": said, "b": said})
