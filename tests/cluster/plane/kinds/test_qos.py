"""Quality-of-service classes."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.kinds.pods.qos import qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": BOTH}], "Guaranteed"),
        ([{"limits": BOTH, "requests": {"cpu": "1000m", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": BOTH, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"limits": BOTH}, {}], "Burstable"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
    ],
)
def test_the_class_follows_from_cpu_and_memory(
    resources: list[dict[str, Any]], expected: str
) -> None:
    # Where requests are left out, the defaults of the API take them from the limits.
    defaulted = [
        {**given, "requests": {**given.get("limits", {}), **given.get("requests", {})}}
        for given in resources
    ]
    containers = [{"name": "c", "resources": given} for given in defaulted]
    assert qos_class({"containers": containers}) == expected
