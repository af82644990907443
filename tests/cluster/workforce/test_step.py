from __future__ import annotations

import asyncio

import pytest

from kvestigate import errors
from kvestigate.cluster.plane.tenancy.timing import START
from tests.cluster.workforce.conftest import (
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    World,
    deployment,
    fingerprint,
    job,
    names,
    pod_template,
)


async def test_nothing_moves_without_a_step(planes: World) -> None:
    plane, api = await planes.virtual("a")
    await api.create(DEPLOYMENTS, deployment("web", 2))
    before = fingerprint(plane)
    for _ in range(50):
        await asyncio.sleep(0)
    assert fingerprint(plane) == before
    assert await names(api, PODS) == []


async def test_a_step_until_idle_converges(stored: World) -> None:
    plane, api = await stored.virtual("a")
    await api.create(DEPLOYMENTS, deployment("web", 3))
    result = await stored.workers.step(plane)
    assert len(await names(api, PODS, phase="Running")) == 3
    assert await names(api, NODES) == ["node-1", "node-2"]
    assert result.idle
    assert result.revision == plane.state.revision
    web = await api.get(DEPLOYMENTS, "web")
    assert web["status"]["readyReplicas"] == 3
    assert web["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


async def test_time_passes_by_the_seconds_that_were_asked_for(planes: World) -> None:
    plane, api = await planes.virtual("a")
    await api.create(JOBS, job("work", "sleep", "60", completions=2))
    assert (await planes.workers.step(plane, seconds=59)).now == START + 59
    assert len(await names(api, PODS, phase="Running")) == 2
    await planes.workers.step(plane, seconds=2)
    assert len(await names(api, PODS, phase="Succeeded")) == 2
    done = await api.get(JOBS, "work")
    assert done["status"]["succeeded"] == 2
    assert done["status"]["completionTime"] == "2026-01-01T00:01:00Z"


async def test_many_small_steps_are_one_long_one(planes: World) -> None:
    ends = []
    for name, steps in (("a", [120.0]), ("b", [1.0] * 120)):
        plane, api = await planes.virtual(name)
        await api.create(JOBS, job("work", "sleep", "45", completions=4))
        for seconds in steps:
            await planes.workers.step(plane, seconds=seconds)
        pods = (await api.list(PODS)).items
        states = [pod["status"]["containerStatuses"][0]["state"] for pod in pods]
        ends.append(sorted(state["terminated"]["finishedAt"] for state in states))
        nodes = (await api.list(NODES)).items
        ready = [node["status"]["conditions"][3]["status"] for node in nodes]
        assert ready == ["True", "True"], "leases are renewed whatever the length of a step"
    assert ends[0] == ends[1]


async def test_a_crashing_pod_does_not_keep_a_step_busy_for_ever(planes: World) -> None:
    plane, api = await planes.virtual("a")
    body = {"metadata": {"name": "crash"}, "spec": pod_template("false")["spec"]}
    await api.create(PODS, body)
    result = await planes.workers.step(plane)
    assert result.idle
    assert START < result.now < START + 300
    status = (await api.get(PODS, "crash"))["status"]["containerStatuses"][0]
    assert status["restartCount"] >= 1
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff"


@pytest.mark.parametrize("seconds", [-1.0, 1e9, float("nan")])
async def test_a_length_that_makes_no_sense_is_refused(planes: World, seconds: float) -> None:
    plane, _ = await planes.virtual("a")
    with pytest.raises(errors.BadRequest, match="seconds"):
        await planes.workers.step(plane, seconds=seconds)


async def test_planes_on_the_wall_clock_cannot_be_stepped(planes: World) -> None:
    plane, _ = await planes.on_the_wall("a")
    with pytest.raises(errors.BadRequest, match="runs on the wall clock"):
        await planes.workers.step(plane)


async def test_steps_of_one_plane_wait_for_each_other(planes: World) -> None:
    plane, _ = await planes.virtual("a")
    results = await asyncio.gather(*(planes.workers.step(plane, seconds=10) for _ in range(3)))
    assert [result.now - START for result in results] == [10, 20, 30]


async def test_a_plane_put_back_starts_over_from_there(planes: World) -> None:
    plane, api = await planes.virtual("a")
    await api.create(JOBS, job("work", "sleep", "30"))
    await planes.workers.step(plane, seconds=10)
    past = await plane.checkpoint("running")
    await planes.workers.step(plane, seconds=100)
    assert len(await names(api, PODS, phase="Succeeded")) == 1
    await plane.restore(past)
    assert (await planes.workers.step(plane, seconds=10)).now == START + 20
    assert len(await names(api, PODS, phase="Running")) == 1
    await planes.workers.step(plane, seconds=30)
    assert len(await names(api, PODS, phase="Succeeded")) == 1


async def test_a_fork_goes_on_where_its_source_was(planes: World) -> None:
    plane, api = await planes.virtual("a")
    await api.create(JOBS, job("work", "sleep", "30"))
    await api.create(DEPLOYMENTS, deployment("web", 2))
    await planes.workers.step(plane, seconds=10)
    forks = await planes.store.fork("a", ["b", "c"])
    prints = set()
    for fork in forks:
        client = planes.client(fork.name)
        before = await client.list(PODS)
        await planes.workers.step(fork, seconds=15)
        after = await client.list(PODS)
        assert [p["status"] for p in before.items] == [p["status"] for p in after.items], (
            "what ran goes on running, untouched"
        )
        await client.scale(DEPLOYMENTS, "web", 3)
        await planes.workers.step(fork, seconds=15)
        assert len(await names(client, PODS, phase="Succeeded")) == 1
        assert len(await names(client, PODS, phase="Running")) == 3
        prints.add(fingerprint(fork))
    assert len(prints) == 1
    assert len(await names(api, PODS, phase="Running")) == 3, "the source was left alone"
    ips = [p["status"].get("podIP") for p in (await client.list(PODS)).items]
    assert len(set(ips)) == len(ips)


async def test_changes_are_dated_by_the_time_of_the_plane(planes: World) -> None:
    plane, api = await planes.virtual("a")
    await api.create(
        PODS, {"metadata": {"name": "nap"}, "spec": pod_template("sleep", "20")["spec"]}
    )
    await planes.workers.step(plane, seconds=30)
    await api.delete(PODS, "nap")
    dated = [change for change in plane.events_since(plane.compacted) if change.item.name == "nap"]
    assert (dated[0].time, dated[-1].time) == (START, START + 30)
    assert START + 20 in {change.time for change in dated}
