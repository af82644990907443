"""What a namespace gives and allows."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.plane.admission.rules.conftest import NAMESPACE, made, pod, refusal
from tests.cluster.plane.conftest import Api

PODS = f"{NAMESPACE}/pods"
BOUNDS = {
    "type": "Container",
    "min": {"cpu": "100m", "memory": "10Mi"},
    "max": {"cpu": "1", "memory": "1Gi"},
    "maxLimitRequestRatio": {"cpu": "2"},
    "default": {"cpu": "500m"},
}


async def limit(api: Api, *limits: dict[str, Any]) -> None:
    obj = {"metadata": {"name": "l"}, "spec": {"limits": list(limits)}}
    await made(api, f"{NAMESPACE}/limitranges", obj)


async def test_containers_get_what_they_leave_out(api: Api) -> None:
    await limit(api, BOUNDS)
    found = await made(api, PODS, pod(resources={"limits": {"cpu": "200m"}}))

    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "200m", "memory": "1Gi"},
        "requests": {"cpu": "200m", "memory": "1Gi"},
    }
    assert found["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: memory request for container c; memory limit for container c"
    )


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        (
            {"limits": {"cpu": "400m", "memory": "5Mi"}},
            "minimum memory usage per Container is 10Mi, but request is 5Mi",
        ),
        (
            {"limits": {"cpu": "400m"}, "requests": {"cpu": "100m"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000",
        ),
        (
            {"limits": {"cpu": "3"}, "requests": {"cpu": "50m"}},
            "[minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per "
            "Container is 1, but limit is 3, cpu max limit to request ratio per Container is 2, "
            "but provided ratio is 60.000000]",
        ),
        (
            {"limits": {"cpu": "400m"}, "requests": {"cpu": "0"}},
            "[minimum cpu usage per Container is 100m, but request is 0, cpu max limit to request "
            "ratio per Container is 2, but no request is specified or request is 0]",
        ),
    ],
)
async def test_containers_stay_within_bounds(api: Api, resources: Any, why: str) -> None:
    await limit(api, BOUNDS)

    assert await refusal(api, PODS, pod(resources=resources)) == why


async def test_a_pod_is_its_containers_together(api: Api) -> None:
    await limit(api, {"type": "Pod", "max": {"cpu": "1"}})
    two = pod(resources={"limits": {"cpu": "600m"}})
    two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "d"})

    assert await refusal(api, PODS, two) == "maximum cpu usage per Pod is 1, but limit is 1200m"
    assert await refusal(api, PODS, pod()) == (
        "maximum cpu usage per Pod is 1.  No limit is specified"
    )


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
    ],
)
async def test_claims_stay_within_bounds(api: Api, size: str, why: str) -> None:
    bounds = {"min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}
    await limit(api, {"type": "PersistentVolumeClaim", **bounds})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    claim = {"metadata": {"name": "c"}, "spec": spec}

    assert await refusal(api, f"{NAMESPACE}/persistentvolumeclaims", claim) == why


async def test_an_invalid_pod_is_invalid_before_it_is_too_large(api: Api) -> None:
    await limit(api, BOUNDS)
    answer = await api.post(PODS, pod(resources={"limits": {"cpu": "3"}, "requests": {"cpu": "4"}}))

    assert answer.status == 422
