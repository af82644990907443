"""What containers use, from two counts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.assembly.metrics.usage import Summary, node_metrics, pod_metrics, usage

T = 1_750_000_000
BEGAN = "2025-06-15T15:06:40Z"


def summary(nanos: int, *, memory: int = 3 * 1024**2, began: str = BEGAN) -> Summary:
    container: dict[str, Any] = {
        "name": "main",
        "startTime": began,
        "cpu": {"usageCoreNanoSeconds": nanos, "usageNanoCores": 7},
        "memory": {"workingSetBytes": memory},
    }
    pod = {"podRef": {"name": "p", "namespace": "n", "uid": "u"}, "containers": [container]}
    return msgspec.convert({"node": {"nodeName": "x"}, "pods": [pod]}, Summary)


@pytest.mark.parametrize(
    ("before", "after", "began", "cores", "window"),
    [
        (2_000_000_000, 5_000_000_000, BEGAN, 300_000_000, 10.0),
        (2_000_000_000, 2_000_000_000, BEGAN, 0, 10.0),
        # A new run counts from its own start.
        (2_000_000_000, 500_000_000, "2025-06-15T15:06:55Z", 100_000_000, 5.0),
        (2_000_000_000, 1_000_000_000, BEGAN, 50_000_000, 20.0),
    ],
)
def test_cores_are_the_average_since_the_last_look(
    before: int, after: int, began: str, cores: int, window: float
) -> None:
    first = usage(summary(before), {}, T + 10)
    second = usage(summary(after, began=began), first.counts, T + 20)
    (container,) = second.pods["n", "p"]
    assert (container.nano_cores, container.window) == (cores, window)


def test_the_first_look_counts_since_the_start() -> None:
    (container,) = usage(summary(2_000_000_000), {}, T + 10).pods["n", "p"]
    assert (container.nano_cores, container.memory) == (200_000_000, 3 * 1024**2)


def test_objects_are_as_metrics_server_makes_them() -> None:
    used = usage(summary(2_000_000_000), {}, T + 10)
    amounts = {"cpu": "200000000n", "memory": "3072Ki"}
    assert pod_metrics("n", "p", {"app": "web"}, used) == {
        "metadata": {
            "name": "p",
            "namespace": "n",
            "creationTimestamp": "2025-06-15T15:06:50Z",
            "labels": {"app": "web"},
        },
        "timestamp": "2025-06-15T15:06:50Z",
        "window": "10.000s",
        "containers": [{"name": "main", "usage": amounts}],
    }
    node = node_metrics("x", {}, used)
    assert (node["usage"], node["metadata"]["name"]) == (amounts, "x")
