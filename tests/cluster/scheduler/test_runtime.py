"""The scheduler at work on a plane."""

from __future__ import annotations

import msgspec
import pytest

from kvestigate import errors
from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.errors import to_status
from kvestigate.http.message import Request, Response
from kvestigate.kube.feasibility.volumes import SELECTED_NODE
from tests.bed import Object, Objects
from tests.cluster.scheduler.conftest import Bed, condition, node, pod, scheduling
from tests.cluster.scheduler.scenarios import claim, on, storage_class, taint, uses, volume


async def test_gives_waiting_and_new_pods_a_node(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    await bed.create("pods", pod("early"))
    async with scheduling(bed):
        await bed.create("pods", pod("late"))
        assert await bed.placed("early", "late") == {"early": "n1", "late": "n1"}


async def test_leaves_pods_of_other_schedulers_alone(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with scheduling(bed):
        await bed.create("pods", pod("foreign", schedulerName="other"))
        await bed.create("pods", pod("own"))
        await bed.placed("own")
        pods = await bed.until("pods", lambda pods: "foreign" in pods)
    assert "nodeName" not in pods["foreign"]["spec"]


async def test_says_why_and_tries_again_when_room_is_made(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    await bed.create("pods", pod("first", cpu="3"))
    async with scheduling(bed):
        await bed.placed("first")
        await bed.create("pods", pod("second", cpu="3"))
        refusal = await bed.refused("second")
        assert (refusal["reason"], refusal["message"]) == (
            "Unschedulable",
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: "
            "1 No preemption victims found for incoming pod.",
        )
        await bed.delete("pods", "first")
        await bed.placed("second")


async def test_a_pod_counts_on_its_node_before_it_is_bound(bed: Bed) -> None:
    for name in ("n1", "n2", "n3"):
        await bed.create("nodes", node(name))
    names = [f"p{number}" for number in range(12)]
    for name in names:
        await bed.create("pods", pod(name, cpu="1"))
    async with scheduling(bed):
        nodes = list((await bed.placed(*names)).values())
    assert {name: nodes.count(name) for name in nodes} == {"n1": 4, "n2": 4, "n3": 4}


async def test_events_tell_of_success_and_failure(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with scheduling(bed):
        await bed.create("pods", pod("fits"))
        await bed.create("pods", pod("too-big", cpu="64"))
        await bed.placed("fits")
        await bed.refused("too-big")
    events = await bed.until("events", lambda events: len(events) == 2)
    told = {
        event["involvedObject"]["name"]: (event["type"], event["reason"], event["message"])
        for event in events.values()
    }
    assert told["fits"] == ("Normal", "Scheduled", "Successfully assigned default/fits to n1")
    assert told["too-big"][:2] == ("Warning", "FailedScheduling")
    assert told["too-big"][2].startswith("0/1 nodes are available: 1 Insufficient cpu.")


async def test_gates_hold_a_pod_back_until_the_last_is_gone(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with scheduling(bed):
        await bed.create("pods", pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        await bed.create("pods", pod("free"))
        await bed.placed("free")
        pods = await bed.until("pods", lambda pods: "gated" in pods)
        assert "nodeName" not in pods["gated"]["spec"]
        await bed.patch("pods", "gated", {"spec": {"schedulingGates": []}})
        await bed.placed("gated")


@pytest.mark.parametrize(
    ("hindrance", "help"),
    [
        ({"unschedulable": True}, {"spec": {"unschedulable": False}}),
        ({"taints": [taint("x")]}, {"spec": {"taints": []}}),
    ],
    ids=["cordon", "taint"],
)
async def test_a_node_that_opens_gets_the_waiting_pods(
    bed: Bed, hindrance: Object, help: Object
) -> None:
    await bed.create("nodes", node("n1", **hindrance))
    async with scheduling(bed):
        await bed.create("pods", pod("p1"))
        await bed.refused("p1")
        await bed.patch("nodes", "n1", help)
        await bed.placed("p1")


async def test_a_new_node_gets_the_waiting_pods(bed: Bed) -> None:
    async with scheduling(bed):
        await bed.create("pods", pod("p1", cpu="3"))
        refusal = await bed.refused("p1")
        assert refusal["message"] == "no nodes available to schedule pods"
        await bed.create("nodes", node("n1"))
        await bed.placed("p1")


async def test_a_new_node_that_opens_late_gets_the_waiting_pods(bed: Bed) -> None:
    await bed.create("nodes", node("small"))
    async with scheduling(bed):
        await bed.create("pods", pod("big", cpu="6"))
        await bed.refused("big")
        await bed.create("nodes", node("large", unschedulable=True, allocatable={"cpu": "8"}))
        await bed.create("pods", pod("seen", nodeSelector={"kubernetes.io/hostname": "large"}))
        await bed.refused("seen")
        await bed.patch("nodes", "large", {"spec": {"unschedulable": False}})
        assert await bed.placed("big") == {"big": "large"}


async def test_a_more_important_pod_takes_the_place_of_others(bed: Bed) -> None:
    await bed.create("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    await bed.create("nodes", node("n1"))
    for name in ("a", "b"):
        await bed.create("pods", on("n1", name, cpu="2"))
    async with scheduling(bed):
        await bed.create("pods", pod("urgent", cpu="2", priorityClassName="high"))
        pods = await bed.until(
            "pods", lambda pods: pods.get("urgent", {}).get("status", {}).get("nominatedNodeName")
        )
        assert condition(pods["urgent"])["message"] == (
            "0/1 nodes are available: 1 Insufficient cpu."
        )
        pods = await bed.until("pods", _leaving)
        (victim,) = _leaving(pods)
        reasons = {item["type"]: item["reason"] for item in pods[victim]["status"]["conditions"]}
        assert reasons["DisruptionTarget"] == "PreemptionByScheduler"
        # Room that is being made is not given to anybody less important.
        await bed.create("pods", pod("sly", cpu="1"))
        await bed.refused("sly")
        await bed.delete("pods", victim)
        assert await bed.placed("urgent") == {"urgent": "n1"}
        uid = pods["urgent"]["metadata"]["uid"]
    events = await bed.until("events", lambda found: "Preempted" in _reasons(found))
    notes = [item["message"] for item in events.values() if item["reason"] == "Preempted"]
    assert notes == [f"Preempted by pod {uid} on node n1"]


def _leaving(pods: Objects) -> list[str]:
    return [name for name, each in pods.items() if "deletionTimestamp" in each["metadata"]]


def _reasons(events: Objects) -> list[str]:
    return [event["reason"] for event in events.values()]


async def test_a_claim_that_waits_is_told_the_node_and_waited_for(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    await bed.create("storageclasses", storage_class("later", "WaitForFirstConsumer"))
    await bed.create("persistentvolumeclaims", claim("data", "later"))
    async with scheduling(bed):
        await bed.create("pods", pod("p1", volumes=uses("data")))
        await bed.until(
            "persistentvolumeclaims",
            lambda found: (
                (found["data"]["metadata"].get("annotations") or {}).get(SELECTED_NODE) == "n1"
            ),
        )
        await bed.create("pods", pod("meanwhile"))
        await bed.placed("meanwhile")
        pods = await bed.until("pods", lambda pods: "p1" in pods)
        assert "nodeName" not in pods["p1"]["spec"]
        await bed.patch("persistentvolumeclaims", "data", {"spec": {"volumeName": "made"}})
        bound = {"status": {"phase": "Bound"}}
        await bed.patch("persistentvolumeclaims", "data", bound, "status")
        assert await bed.placed("p1") == {"p1": "n1"}


async def test_a_pod_follows_its_volume(bed: Bed) -> None:
    for name in ("n1", "n2", "n3"):
        await bed.create("nodes", node(name))
    await bed.create("storageclasses", storage_class("now", "Immediate"))
    await bed.create("persistentvolumeclaims", claim("data", "now"))
    async with scheduling(bed):
        await bed.create("pods", pod("p1", volumes=uses("data")))
        refusal = await bed.refused("p1")
        assert "pod has unbound immediate PersistentVolumeClaims" in refusal["message"]
        await bed.create("persistentvolumes", volume("disk", "now", "n2"))
        await bed.patch("persistentvolumeclaims", "data", {"spec": {"volumeName": "disk"}})
        bound = {"status": {"phase": "Bound"}}
        await bed.patch("persistentvolumeclaims", "data", bound, "status")
        assert await bed.placed("p1") == {"p1": "n2"}


async def test_a_volume_made_by_hand_is_reserved_for_the_claim(bed: Bed) -> None:
    for name in ("n1", "n2"):
        await bed.create("nodes", node(name))
    kind = storage_class("local", "WaitForFirstConsumer", "kubernetes.io/no-provisioner")
    await bed.create("storageclasses", kind)
    await bed.create("persistentvolumes", volume("disk", "local", "n2"))
    await bed.patch("persistentvolumes", "disk", {"status": {"phase": "Available"}}, "status")
    await bed.create("persistentvolumeclaims", claim("data", "local"))
    async with scheduling(bed):
        await bed.create("pods", pod("p1", volumes=uses("data")))
        found = await bed.until(
            "persistentvolumes", lambda found: found["disk"]["spec"].get("claimRef")
        )
        assert found["disk"]["spec"]["claimRef"]["name"] == "data"
        await bed.patch("persistentvolumeclaims", "data", {"spec": {"volumeName": "disk"}})
        bound = {"status": {"phase": "Bound"}}
        await bed.patch("persistentvolumeclaims", "data", bound, "status")
        assert await bed.placed("p1") == {"p1": "n2"}


async def test_pods_that_ended_make_room(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    await bed.create("pods", on("n1", "job", cpu="3"))
    async with scheduling(bed):
        await bed.create("pods", pod("next", cpu="3"))
        await bed.refused("next")
        await bed.patch("pods", "job", {"status": {"phase": "Succeeded"}}, "status")
        await bed.placed("next")


async def test_a_scheduler_that_starts_again_counts_what_is_there(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with scheduling(bed):
        await bed.create("pods", pod("first", cpu="3"))
        await bed.placed("first")
    async with scheduling(bed):
        await bed.create("pods", pod("second", cpu="3"))
        await bed.refused("second")


async def test_running_says_when_it_is_ready_and_ends_when_cancelled(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with Supervisor("test") as supervisor:
        await supervisor.start("scheduler", Scheduler(bed.api).run)
        await bed.create("pods", pod("p1"))
        await bed.placed("p1")


async def test_a_forbidden_resource_is_the_callers_failure() -> None:
    async def refuse(request: Request) -> Response:
        status = to_status(errors.Forbidden("pods is forbidden"))
        return Response(403, body=msgspec.json.encode(status))

    with pytest.raises(errors.Forbidden):
        async with Scheduler(Api(InProcessTransport(refuse))):
            pass


async def test_a_pod_waits_for_the_devices_that_it_claims(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with scheduling(bed):
        claims = [{"name": "gpu", "resourceClaimName": "one"}]
        await bed.create("pods", pod("p", resourceClaims=claims))
        refusal = await bed.refused("p")
        assert refusal["message"].startswith(
            '0/1 nodes are available: resourceclaim.resource.k8s.io "one" not found.'
        )
        request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
        claim = {"metadata": {"name": "one"}, "spec": {"devices": {"requests": [request]}}}
        await bed.create("resourceclaims", claim)
        await bed.until(
            "pods", lambda pods: "device class gpu.example.com" in condition(pods["p"])["message"]
        )
        assert "nodeName" not in (await bed.get("pods", "p"))["spec"]


async def test_a_pod_waits_for_a_claim_of_its_template(bed: Bed) -> None:
    await bed.create("nodes", node("n1"))
    async with scheduling(bed):
        claims = [{"name": "gpu", "resourceClaimTemplateName": "missing"}]
        await bed.create("pods", pod("p", resourceClaims=claims))
        refusal = await bed.refused("p")
    assert "ResourceClaim not created yet" in refusal["message"]
