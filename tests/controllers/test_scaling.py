"""The size that a load asks for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.controllers.scaling import Past, limited, propose
from kvestigate.controllers.views import HorizontalPodAutoscaler, ResourceMetric
from kvestigate.kube.quantities import parse
from kvestigate.kube.views.pods import Pod
from tests.controllers.builders import NOW, pod, view


def worker(name: str, **more: Any) -> Pod:
    container = {"name": "main", "resources": {"requests": {"cpu": "100m"}}}
    return pod(name, spec={"containers": [container]}, **more)


def _metric(**target: Any) -> ResourceMetric:
    return msgspec.convert({"name": "cpu", "target": target}, ResourceMetric)


UTILISATION = _metric(averageUtilization=50)


def _propose(metric: ResourceMetric, *usage: str, silent: int = 0) -> int | None:
    pods = [worker(f"p{n}") for n in range(len(usage))]
    pods += [worker(f"silent{n}", ready=False) for n in range(silent)]
    used = {f"p{n}": {"cpu": parse(amount)} for n, amount in enumerate(usage)}
    found = propose([metric], len(pods), pods, used)
    return found.replicas if found else None


@pytest.mark.parametrize(
    ("metric", "usage", "silent", "expected"),
    [
        (UTILISATION, ["100m", "100m"], 0, 4),
        (UTILISATION, ["52m", "53m"], 0, 2),
        (UTILISATION, ["10m"] * 4, 0, 1),
        (UTILISATION, ["75m"] * 3, 0, 5),
        (UTILISATION, ["10m"] * 2, 2, 3),
        (UTILISATION, [], 2, None),
        (_metric(averageValue="200m"), ["400m", "400m"], 0, 4),
    ],
    ids=["double", "tolerated", "shrink", "round up", "silence counts", "no data", "value"],
)
def test_proposals(
    metric: ResourceMetric, usage: list[str], silent: int, expected: int | None
) -> None:
    assert _propose(metric, *usage, silent=silent) == expected


def test_pods_that_ask_for_nothing_have_no_utilisation() -> None:
    assert propose([UTILISATION], 1, [pod("p")], {"p": {"cpu": parse("1")}}) is None


def scaler(**spec: Any) -> HorizontalPodAutoscaler:
    return view(HorizontalPodAutoscaler, "h", spec={"minReplicas": 2, "maxReplicas": 50, **spec})


@pytest.mark.parametrize(
    ("current", "wished", "expected"),
    [
        (4, 6, (6, "")),
        (4, 40, (8, "ScaleUpLimit")),
        (2, 40, (6, "ScaleUpLimit")),
        (40, 90, (50, "TooManyReplicas")),
        (4, 1, (2, "TooFewReplicas")),
    ],
)
def test_bounds(current: int, wished: int, expected: tuple[int, str]) -> None:
    assert limited(scaler(), current, wished, Past(), NOW) == expected


def test_it_shrinks_only_after_a_quiet_window() -> None:
    past = Past()
    assert limited(scaler(), 8, 8, past, NOW)[0] == 8
    assert limited(scaler(), 8, 3, past, NOW + 200)[0] == 8
    assert limited(scaler(), 8, 3, past, NOW + 301)[0] == 3


def test_policies_limit_the_pace() -> None:
    rules = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    it = scaler(behavior={"scaleUp": rules, "scaleDown": {"selectPolicy": "Disabled"}})
    past = Past()
    assert limited(it, 3, 9, past, NOW) == (4, "ScaleUpLimit")
    past.steps.append((NOW, 1))
    assert limited(it, 4, 9, past, NOW + 30) == (4, "ScaleUpLimit")
    assert limited(it, 4, 9, past, NOW + 61) == (5, "ScaleUpLimit")
    assert limited(it, 4, 2, Past(), NOW) == (4, "ScaleDownLimit")
