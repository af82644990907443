"""The size that a load asks for, and what is shown of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.controllers.autoscaling.metrics import Proposal, Seen, Tolerance, propose
from kvestigate.cluster.controllers.objects import Behavior, Metric
from kvestigate.kube.quantities import parse
from kvestigate.kube.views.pods import Pod
from tests.cluster.controllers.builders import NOW, at, pod


def worker(name: str, *, cpu: str = "100m", started: float = -1000, **more: Any) -> Pod:
    resources = {"requests": {"cpu": cpu, "memory": "64Mi"}}
    spec = {"containers": [{"name": "main", "resources": resources}]}
    return pod(name, spec=more.pop("spec", spec), startTime=at(started), **more)


def of(*metrics: Metric, pods: list[Pod], main: str, current: int = 0) -> Proposal:
    """With pods whose only container uses so much of the CPU."""
    usage = {each.metadata.name: {"main": {"cpu": parse(main)}} for each in pods}
    return propose(metrics, Seen(NOW, current or len(pods), pods, usage))


def metric(resource: str = "cpu", **target: Any) -> Metric:
    source = {"name": resource, "target": target}
    return msgspec.convert({"type": "Resource", "resource": source}, Metric)


def of_container(name: str, **target: Any) -> Metric:
    source = {"name": "cpu", "container": name, "target": target}
    return msgspec.convert({"type": "ContainerResource", "containerResource": source}, Metric)


HALF = metric(averageUtilization=50)


def proposed(
    *metrics: Metric, cpu: list[str], memory: str = "64Mi", silent: int = 0, unready: int = 0
) -> Proposal:
    """With so many pods that use what is given, and others."""
    pods = [worker(f"p{n}") for n in range(len(cpu))]
    pods += [worker(f"silent{n}") for n in range(silent)]
    pods += [worker(f"unready{n}", ready=False, started=-100) for n in range(unready)]
    used = {f"p{n}": amount for n, amount in enumerate(cpu)}
    used |= {f"unready{n}": "900m" for n in range(unready)}
    usage = {
        name: {"main": {"cpu": parse(amount), "memory": parse(memory)}}
        for name, amount in used.items()
    }
    return propose(metrics, Seen(NOW, len(pods), pods, usage))


@pytest.mark.parametrize(
    ("metric", "cpu", "others", "size"),
    [
        (HALF, ["100m", "100m"], {}, 4),
        (HALF, ["52m", "53m"], {}, 2),
        (HALF, ["55m"] * 20, {}, 20),
        (HALF, ["45m"] * 20, {}, 20),
        (HALF, ["56m"] * 20, {}, 23),
        (HALF, ["50m"] * 2, {"silent": 2}, 4),
        (HALF, ["10m"] * 4, {}, 1),
        (HALF, ["75m"] * 3, {}, 5),
        (HALF, ["10m"] * 2, {"silent": 2}, 4),
        (HALF, ["10m"] * 6, {"silent": 1}, 4),
        (HALF, ["200m"] * 2, {"silent": 1}, 8),
        (HALF, ["60m"] * 2, {"silent": 2}, 4),
        (HALF, ["200m"] * 2, {"unready": 1}, 8),
        (HALF, ["10m"] * 2, {"unready": 1}, 1),
        (metric(averageValue="200m"), ["400m", "400m"], {}, 4),
        (metric(averageValue="200m"), ["20m"] * 3, {"silent": 1}, 2),
        (metric("memory", averageUtilization=50), ["0"] * 2, {}, 4),
        (of_container("main", averageUtilization=50), ["100m"], {}, 2),
    ],
)
def test_sizes(metric: Metric, cpu: list[str], others: dict[str, Any], size: int) -> None:
    assert proposed(metric, cpu=cpu, **others).replicas == size


@pytest.mark.parametrize(
    ("metric", "memory", "current"),
    [
        (HALF, "1", {"averageUtilization": 40, "averageValue": "40m"}),
        (metric(averageValue="1"), "1", {"averageValue": "40m"}),
        (metric("memory", averageValue="1Gi"), "100Mi", {"averageValue": "100Mi"}),
        (metric("memory", averageValue="1Gi"), "1025", {"averageValue": "1025"}),
    ],
)
def test_what_is_shown(metric: Metric, memory: str, current: dict[str, Any]) -> None:
    (shown,) = proposed(metric, cpu=["30m", "50m"], memory=memory).metrics
    assert shown.resource is not None
    assert msgspec.to_builtins(shown.resource.current) == current


def test_a_whole_core_is_shown_as_one() -> None:
    (shown,) = proposed(HALF, cpu=["1", "1"]).metrics
    assert shown.resource is not None
    assert shown.resource.current.average_value == "1"


def test_a_containers_metric_counts_that_one_alone() -> None:
    usage = {"p": {"main": {"cpu": parse("30m")}, "proxy": {"cpu": parse("500m")}}}
    seen = Seen(NOW, 1, [worker("p")], usage)
    found = propose([of_container("main", averageUtilization=50)], seen)
    assert msgspec.to_builtins(found.metrics) == (
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": "main",
                "current": {"averageUtilization": 30, "averageValue": "30m"},
            },
        },
    )
    assert found.because == "cpu container resource utilization (percentage of request)"


def test_metrics_keep_their_places() -> None:
    absent = metric("nvidia.com/gpu", averageUtilization=50)
    found = proposed(absent, HALF, cpu=["100m"])
    assert (found.replicas, found.because) == (
        2,
        "cpu resource utilization (percentage of request)",
    )
    assert [shown.type for shown in found.metrics] == ["", "Resource"]


def test_it_does_not_shrink_while_a_metric_is_unknown() -> None:
    absent = metric("nvidia.com/gpu", averageUtilization=50)
    assert proposed(absent, HALF, cpu=["1m"] * 3).replicas is None


@pytest.mark.parametrize(
    ("metric", "cpu", "reason", "why"),
    [
        (
            HALF,
            [],
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: "
            "no metrics returned from resource metrics API",
        ),
        (
            metric("nvidia.com/gpu", averageValue="1"),
            ["1"],
            "FailedGetResourceMetric",
            "failed to get nvidia.com/gpu usage: unable to get metrics for resource "
            "nvidia.com/gpu: no metrics returned from resource metrics API",
        ),
        (
            of_container("main", averageUtilization=50),
            [],
            "FailedGetContainerResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: "
            "no metrics returned from resource metrics API",
        ),
        (
            Metric("Pods"),
            ["1"],
            "FailedGetPodsMetric",
            "unable to fetch metrics from custom metrics API: this cluster has none",
        ),
    ],
)
def test_what_is_unknown_says_why(metric: Metric, cpu: list[str], reason: str, why: str) -> None:
    found = proposed(metric, cpu=cpu)
    assert found.replicas is None
    assert [(one.reason, str(one)) for one in found.unread] == [(reason, why)]


def test_pods_that_ask_for_nothing_have_no_utilisation() -> None:
    bare = worker("p", spec={"containers": [{"name": "main"}]})
    assert [str(one) for one in of(HALF, pods=[bare], main="1").unread] == [
        "failed to get cpu utilization: missing request for cpu in container main of Pod p"
    ]
    zero = worker("p", cpu="0")
    assert [str(one) for one in of(HALF, pods=[zero], main="1").unread] == [
        "failed to get cpu utilization: no metrics returned matched known pods"
    ]


@pytest.mark.parametrize(
    ("started", "since", "size"),
    [(-100, -50, 4), (-1000, -990, 4), (-1000, -500, 8)],
    ids=["it starts", "it was never ready", "the load is too much for it"],
)
def test_a_pod_that_was_ready_once_counts(started: float, since: float, size: int) -> None:
    pods = [worker("a"), worker("b", ready=False, started=started, since=since)]
    assert of(HALF, pods=pods, main="200m").replicas == size


def test_what_a_pod_asks_for_as_a_whole_is_what_counts() -> None:
    whole = {"containers": [{"name": "main"}], "resources": {"requests": {"cpu": "200m"}}}
    assert of(HALF, pods=[worker("p", spec=whole)], main="200m").replicas == 2


def test_a_pod_of_which_a_container_tells_nothing_does_not_answer() -> None:
    usage = {"p": {"main": {"cpu": parse("1")}, "proxy": {}}}
    found = propose([HALF], Seen(NOW, 1, [worker("p")], usage))
    assert found.replicas is None


def test_an_autoscaler_may_say_what_it_tolerates() -> None:
    rules = {"scaleUp": {"tolerance": "50m"}, "scaleDown": {"tolerance": "0.4"}}
    tolerance = Tolerance.of(msgspec.convert(rules, Behavior))
    sizes = []
    for used in ("54m", "31m"):
        usage = {f"p{n}": {"main": {"cpu": parse(used)}} for n in range(10)}
        seen = Seen(NOW, 10, [worker(f"p{n}") for n in range(10)], usage)
        sizes.append(propose([HALF], seen, tolerance).replicas)
    assert sizes == [11, 10]
