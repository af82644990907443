"""How far a workload follows what is wished of it."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.controllers.autoscaling.scaling import Past, Verdict, limited
from kvestigate.cluster.controllers.objects import HorizontalPodAutoscaler
from tests.cluster.controllers.builders import NOW, view


def scaler(**spec: Any) -> HorizontalPodAutoscaler:
    return view(HorizontalPodAutoscaler, "h", spec={"minReplicas": 2, "maxReplicas": 50, **spec})


@pytest.mark.parametrize(
    ("current", "wished", "expected"),
    [
        (4, 6, (6, "")),
        (4, 40, (8, "ScaleUpLimit")),
        (2, 40, (4, "ScaleUpLimit")),
        (3, 40, (6, "ScaleUpLimit")),
        (25, 90, (50, "TooManyReplicas")),
        (40, 90, (50, "TooManyReplicas")),
        (4, 1, (2, "TooFewReplicas")),
    ],
)
def test_bounds(current: int, wished: int, expected: tuple[int, str]) -> None:
    verdict = limited(scaler(), current, wished, Past(), NOW)
    assert (verdict.size, verdict.limit) == expected


def test_it_shrinks_only_after_a_quiet_window() -> None:
    past = Past()
    assert limited(scaler(), 8, 8, past, NOW).size == 8
    assert limited(scaler(), 8, 3, past, NOW + 200) == Verdict(8, "", "ScaleDownStabilized")
    assert limited(scaler(), 8, 3, past, NOW + 301).size == 3


def test_the_highest_wish_of_the_window_counts_on_the_way_up_too() -> None:
    past = Past([(NOW - 60, 7)])
    assert limited(scaler(), 4, 5, past, NOW) == Verdict(7, "", "ScaleDownStabilized")
    assert limited(scaler(behavior={}), 4, 5, past, NOW) == Verdict(5)


def test_who_has_rules_may_add_four_at_once() -> None:
    assert limited(scaler(behavior={}), 2, 40, Past(), NOW) == Verdict(6, "ScaleUpLimit")


def test_what_went_and_came_back_in_a_period_is_no_change() -> None:
    rules = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}
    it = scaler(behavior={"scaleUp": rules})
    past = Past(steps=[(NOW - 40, -3), (NOW - 20, 2)])
    assert limited(it, 4, 20, past, NOW) == Verdict(7, "ScaleUpLimit")


def test_policies_limit_the_pace() -> None:
    rules = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    it = scaler(behavior={"scaleUp": rules, "scaleDown": {"selectPolicy": "Disabled"}})
    past = Past()
    assert limited(it, 3, 9, past, NOW) == Verdict(4, "ScaleUpLimit")
    past.steps.append((NOW, 1))
    assert limited(it, 4, 9, past, NOW + 30) == Verdict(4, "ScaleUpLimit")
    assert limited(it, 4, 9, past, NOW + 61) == Verdict(5, "ScaleUpLimit")
    assert limited(it, 4, 2, Past(), NOW) == Verdict(4, "ScaleDownLimit")
    assert limited(it, 2, 1, Past(), NOW) == Verdict(2, "TooFewReplicas")
