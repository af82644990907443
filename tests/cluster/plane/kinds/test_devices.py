"""The status of resource claims: what a server refuses, and what goes by itself."""

from __future__ import annotations

from typing import Any

from tests.cluster.plane.conftest import Api
from tests.cluster.plane.kinds.test_core import causes

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
STATUS = f"{CLAIMS}/a/status"
PLACE = {"driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [{"request": "r", **PLACE}]}}
POD = {"resource": "pods", "name": "p", "uid": "u"}


async def make(api: Api, **metadata: Any) -> None:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    spec = {"devices": {"requests": requests}}
    await api.post(CLAIMS, {"metadata": {"name": "a", **metadata}, "spec": spec})


async def test_only_allocated_claims_are_reserved(api: Api) -> None:
    await make(api)
    assert await causes(api, STATUS, {"status": {"reservedFor": [POD]}}) == [
        ("status.reservedFor", "Forbidden: may not be specified when `allocated` is not set")
    ]
    both = {"allocation": ALLOCATION, "reservedFor": [POD]}
    assert await causes(api, STATUS, {"status": both}) == []


async def test_an_allocation_is_set_and_dropped_but_not_changed(api: Api) -> None:
    await make(api)
    await api.patch(STATUS, {"status": {"allocation": ALLOCATION}})
    other = {"devices": {"results": [{"request": "r", **PLACE, "device": "gpu-1"}]}}
    [(field, why)] = await causes(api, STATUS, {"status": {"allocation": other}})
    assert (field, why.rpartition(": ")[2]) == ("status.allocation", "field is immutable")
    assert await causes(api, STATUS, {"status": {"allocation": None}}) == []


async def test_a_claim_that_goes_gets_no_new_reservation(api: Api) -> None:
    await make(api, finalizers=["example.com/keep"])
    await api.patch(STATUS, {"status": {"allocation": ALLOCATION, "reservedFor": [POD]}})
    await api.delete(f"{CLAIMS}/a")
    [(field, why)] = await causes(
        api, STATUS, {"status": {"reservedFor": [POD, {**POD, "name": "q", "uid": "v"}]}}
    )
    assert (field, why.partition(":")[0]) == ("status.reservedFor", "Forbidden")
    assert await causes(api, STATUS, {"status": {"reservedFor": None}}) == []


async def test_what_a_driver_said_goes_with_the_allocation(api: Api) -> None:
    await make(api)
    told = {"allocation": ALLOCATION, "devices": [PLACE]}
    made = await api.patch(STATUS, {"status": told})
    assert made.body["status"]["devices"] == [{**PLACE, "conditions": None}]
    freed = await api.patch(STATUS, {"status": {"allocation": None}})
    assert "devices" not in freed.body["status"]
