"""The scheduler at work on a plane."""

from __future__ import annotations

from tests.scheduler.conftest import Bed, node, pod, scheduling


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
