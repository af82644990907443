"""The scheduler gives devices to claims: what it writes, what it says, what it takes back."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.api import Api
from tests.bed import Object
from tests.cluster.scheduler.conftest import Bed, condition, node, pod, scheduling

DRIVER = "gpu.example.com"
PROTECTION = "resource.kubernetes.io/delete-protection"


def offered(name: str, *devices: str, **device: Any) -> Object:
    """A slice of the node of this name."""
    listed = [{"name": each, **device} for each in devices]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": listed},
    }


def device_class(name: str = "gpu") -> Object:
    expression = f'device.driver == "{DRIVER}"'
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def claim(name: str, **exactly: Any) -> Object:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def using(name: str, *claims: str, **spec: Any) -> Object:
    listed = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, resourceClaims=listed, **spec)


def devices(claim: Object) -> list[str]:
    results = claim["status"]["allocation"]["devices"]["results"]
    return [f"{each['pool']}/{each['device']}" for each in results]


async def prepared(bed: Bed, *slices: Object) -> None:
    for each in slices:
        await bed.create("nodes", node(each["spec"]["nodeName"]))
        await bed.create("resourceslices", each)
    await bed.create("deviceclasses", device_class())


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound(bed: Bed) -> None:
    await prepared(bed, offered("n1", "gpu-0", "gpu-1"))
    await bed.create("resourceclaims", claim("one"))
    async with scheduling(bed):
        made = await bed.create("pods", using("p", "one"))
        await bed.placed("p")
    written = await bed.get("resourceclaims", "one")
    assert devices(written) == ["n1/gpu-0"]
    assert written["metadata"]["finalizers"] == [PROTECTION]
    status = written["status"]
    assert status["reservedFor"] == [
        {"resource": "pods", "name": "p", "uid": made["metadata"]["uid"]}
    ]
    [term] = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]


async def test_pods_that_come_at_once_get_different_devices(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a", "b"), offered("n2", "a", "b"))
    names = ["w", "x", "y", "z"]
    for name in names:
        await bed.create("resourceclaims", claim(name))
        await bed.create("pods", using(name, name))
    async with scheduling(bed):
        await bed.placed(*names)
    given = [devices(await bed.get("resourceclaims", name))[0] for name in names]
    assert sorted(given) == ["n1/a", "n1/b", "n2/a", "n2/b"]


async def test_pods_that_share_a_claim_are_on_its_node(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a"), offered("n2", "a"))
    await bed.create("resourceclaims", claim("one"))
    async with scheduling(bed):
        for name in ("p", "q"):
            await bed.create("pods", using(name, "one"))
        nodes = await bed.placed("p", "q")
    assert nodes["p"] == nodes["q"]
    written = await bed.get("resourceclaims", "one")
    assert sorted(each["name"] for each in written["status"]["reservedFor"]) == ["p", "q"]


async def test_a_pod_waits_with_the_words_of_kube_scheduler(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a"))
    await bed.create("resourceclaims", claim("two", count=2))
    async with scheduling(bed):
        await bed.create("pods", using("p", "two"))
        refusal = await bed.refused("p")
        assert (refusal["reason"], refusal["message"]) == (
            "Unschedulable",
            "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, "
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        )
        await bed.create("nodes", node("n2"))
        await bed.create("resourceslices", offered("n2", "a", "b"))
        assert await bed.placed("p") == {"p": "n2"}


async def test_a_device_is_given_again_when_its_claim_is_gone(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a"))
    for name in ("one", "two"):
        await bed.create("resourceclaims", claim(name))
    async with scheduling(bed):
        await bed.create("pods", using("p", "one"))
        await bed.placed("p")
        await bed.create("pods", using("q", "two"))
        await bed.refused("q")
        gone = {"allocation": None, "reservedFor": None}
        await bed.patch("resourceclaims", "one", {"status": gone}, "status")
        await bed.placed("q")


async def test_a_selector_without_a_value_is_an_error_that_is_tried_again(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a"))
    selectors = [{"cel": {"expression": 'device.attributes["x.io"].y == 1'}}]
    await bed.create("resourceclaims", claim("one", selectors=selectors))
    async with scheduling(bed):
        await bed.create("pods", using("p", "one"))
        refusal = await bed.refused("p")
        assert refusal["reason"] == "SchedulerError"
        assert refusal["message"].startswith(
            'running "DynamicResources" filter plugin: claim default/one: selector #0: '
            "CEL runtime error: no such key: "
        )
        value = {"attributes": {"x.io/y": {"int": 1}}}
        await bed.patch("resourceslices", "n1", {"spec": {"devices": [{"name": "a", **value}]}})
        await bed.placed("p")


async def test_the_node_with_the_preferred_alternative_is_taken(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a"), offered("n2", "a", "b"), offered("n3", "a"))
    alternatives = [
        {"name": "two", "deviceClassName": "gpu", "count": 2},
        {"name": "one", "deviceClassName": "gpu"},
    ]
    requests = [{"name": "r", "firstAvailable": alternatives}]
    body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    await bed.create("resourceclaims", body)
    async with scheduling(bed):
        await bed.create("pods", using("p", "c"))
        assert await bed.placed("p") == {"p": "n2"}
    results = (await bed.get("resourceclaims", "c"))["status"]["allocation"]["devices"]["results"]
    assert [each["request"] for each in results] == ["r/two", "r/two"]


async def test_devices_are_free_again_when_the_pod_cannot_be_bound(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await prepared(bed, offered("n1", "a"))
    await bed.create("resourceclaims", claim("one"))
    bind, failures = Api.bind, [errors.ServiceUnavailable("no binding today")]

    async def failing(self: Api, *arguments: Any, **options: Any) -> None:
        if failures:
            raise failures.pop()
        await bind(self, *arguments, **options)

    monkeypatch.setattr(Api, "bind", failing)
    async with scheduling(bed):
        await bed.create("pods", using("p", "one"))
        message = 'binding rejected: running Bind plugin "DefaultBinder": no binding today'
        pods = await bed.until("pods", lambda pods: condition(pods["p"]))
        assert condition(pods["p"])["message"] == message
        await bed.until(
            "resourceclaims", lambda claims: not claims["one"]["status"].get("reservedFor")
        )
        await bed.placed("p")
    written = await bed.get("resourceclaims", "one")
    assert [each["name"] for each in written["status"]["reservedFor"]] == ["p"]


async def test_a_claim_with_devices_where_its_pod_cannot_be_gets_others(bed: Bed) -> None:
    await prepared(bed, offered("n1", "a"), offered("n2", "a"))
    await bed.create("resourceclaims", claim("one"))
    async with scheduling(bed):
        await bed.create("pods", using("p", "one", nodeSelector={"kubernetes.io/hostname": "n1"}))
        await bed.placed("p")
        await bed.patch("resourceclaims", "one", {"status": {"reservedFor": None}}, "status")
        await bed.create("pods", using("q", "one", nodeSelector={"kubernetes.io/hostname": "n2"}))
        assert await bed.placed("q") == {"q": "n2"}
    assert devices(await bed.get("resourceclaims", "one")) == ["n2/a"]


async def test_a_pod_is_bound_when_its_devices_are_prepared(bed: Bed) -> None:
    conditions = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
    await prepared(bed, offered("n1", "a", **conditions))
    await bed.create("resourceclaims", claim("one"))
    async with scheduling(bed):
        await bed.create("pods", using("p", "one"))
        await bed.until("resourceclaims", lambda found: found["one"].get("status"))
        await bed.until(
            "events",
            lambda events: "BindingConditionsPending" in {e["reason"] for e in events.values()},
        )
        assert "nodeName" not in (await bed.get("pods", "p"))["spec"]
        ready = {
            "type": "ready",
            "status": "True",
            "reason": "Attached",
            "message": "",
            "lastTransitionTime": "2026-11-18T08:00:00Z",
        }
        status = {"driver": DRIVER, "pool": "n1", "device": "a", "conditions": [ready]}
        await bed.patch("resourceclaims", "one", {"status": {"devices": [status]}}, "status")
        await bed.placed("p")
