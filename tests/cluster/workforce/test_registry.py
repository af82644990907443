from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from kvestigate.client.api import Api
from kvestigate.cluster.plane.store.memory import MemoryBackend
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
    world,
)
from tests.virtual_clock import VirtualClock

NOON = 1_800_000_000.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
async def walled(clock: VirtualClock) -> AsyncIterator[World]:
    """Planes on a wall clock that the test moves."""
    async with world(MemoryBackend(), clock=clock) as made:
        yield made


async def pass_time(planes: World, clock: VirtualClock, seconds: float) -> None:
    """Second by second, as timers are set by what happens on the way."""
    for _ in range(int(seconds)):
        clock.advance(1.0)
        for _ in range(3):  # a timer, its callback, what it queues
            await asyncio.sleep(0)
        await planes.workers.rested()


async def test_the_first_change_brings_workers_and_quiet_lets_it_go(
    walled: World, clock: VirtualClock
) -> None:
    _, api = await walled.on_the_wall("a")
    assert len(walled.workers) == 0
    await api.create(DEPLOYMENTS, deployment("web", 3))
    await walled.workers.rested()
    assert len(walled.workers) == 1
    assert len(await names(api, PODS, phase="Running")) == 3
    await pass_time(walled, clock, 7)
    assert len(walled.workers) == 0


async def test_idle_planes_have_none(walled: World) -> None:
    for number in range(20):
        await walled.on_the_wall(f"idle-{number}")
    _, api = await walled.on_the_wall("busy")
    await api.create(DEPLOYMENTS, deployment("web", 1))
    await walled.workers.rested()
    assert len(walled.workers) == 1


async def test_a_new_workers_leaves_alone_what_an_earlier_one_runs(
    walled: World, clock: VirtualClock
) -> None:
    _, api = await walled.on_the_wall("a")
    await api.create(DEPLOYMENTS, deployment("web", 2))
    await walled.workers.rested()
    before = {p["metadata"]["name"]: p["status"] for p in (await api.list(PODS)).items}
    await pass_time(walled, clock, 100)
    assert len(walled.workers) == 0
    await api.scale(DEPLOYMENTS, "web", 3)
    await walled.workers.rested()
    after = {p["metadata"]["name"]: p["status"] for p in (await api.list(PODS)).items}
    assert {name: after[name] for name in before} == before
    assert len(after) == 3
    ready = [n["status"]["conditions"][3]["status"] for n in (await api.list(NODES)).items]
    assert ready == ["True", "True"]


async def test_what_is_due_later_brings_the_workers_back(
    walled: World, clock: VirtualClock
) -> None:
    _, api = await walled.on_the_wall("a")
    await api.create(JOBS, job("work", "sleep", "60"))
    await walled.workers.rested()
    await pass_time(walled, clock, 30)
    assert len(walled.workers) == 0
    assert len(await names(api, PODS, phase="Running")) == 1
    await pass_time(walled, clock, 31)
    assert len(await names(api, PODS, phase="Succeeded")) == 1


async def test_planes_do_not_see_each_other(walled: World) -> None:
    untouched, _ = await walled.on_the_wall("a")
    before = fingerprint(untouched)
    clients: list[Api] = []
    for name in ("b", "c"):
        _, api = await walled.on_the_wall(name)
        clients.append(api)
        await api.create(DEPLOYMENTS, deployment(name, 2))
    await walled.workers.rested()
    for name, api in zip(("b", "c"), clients, strict=True):
        found = await names(api, PODS)
        assert len(found) == 2
        assert all(pod.startswith(f"{name}-") for pod in found)
    assert fingerprint(untouched) == before


async def test_a_forked_plane_can_be_handed_over(walled: World, clock: VirtualClock) -> None:
    _, api = await walled.on_the_wall("a")
    await api.create(JOBS, job("work", "sleep", "20"))
    await walled.workers.rested()
    (fork,) = await walled.store.fork("a", ["b"])
    walled.workers.adopt(fork)
    await pass_time(walled, clock, 25)
    for name in ("a", "b"):
        assert len(await names(walled.client(name), PODS, phase="Succeeded")) == 1


async def test_workers_goes_with_its_plane(walled: World) -> None:
    _, api = await walled.on_the_wall("a")
    await api.create(DEPLOYMENTS, deployment("web", 2))
    walled.workers.dismiss("a")
    await walled.store.delete("a")
    await walled.workers.rested()
    assert len(walled.workers) == 0
    assert walled.store.planes() == []


async def test_workers_can_be_for_stepped_planes_only(clock: VirtualClock) -> None:
    async with world(MemoryBackend(), clock=clock, on_wall_clock=False) as made:
        _, api = await made.on_the_wall("a")
        await api.create(DEPLOYMENTS, deployment("web", 2))
        await made.workers.rested()
        assert await names(api, PODS) == []
        plane, stepped = await made.virtual("b")
        await stepped.create(DEPLOYMENTS, deployment("web", 2))
        await made.workers.step(plane)
        assert len(await names(stepped, PODS, phase="Running")) == 2


async def test_a_durable_store_is_worked_on_too(stored: World) -> None:
    _, api = await stored.on_the_wall("a")
    version = (await api.list(PODS)).metadata.resource_version
    watch = api.watch(PODS, resource_version=version)
    await api.create(DEPLOYMENTS, deployment("web", 3))
    running: set[str] = set()
    async with aclosing(watch):
        async for event in watch:
            if event.object["status"]["phase"] == "Running":
                running.add(event.object["metadata"]["name"])
            if len(running) == 3:
                break


@pytest.mark.parametrize("simulate", [True, False])
async def test_every_node_object_is_a_node_unless_it_says_no(
    walled: World, clock: VirtualClock, simulate: bool
) -> None:
    _, api = await walled.on_the_wall("a")
    annotations = {} if simulate else {"kvestigate.dev/simulate": "false"}
    node = {
        "metadata": {"name": "big", "annotations": annotations},
        "status": {"capacity": {"cpu": "96"}, "allocatable": {"cpu": "96"}},
    }
    await api.create(NODES, node)
    await walled.workers.rested()
    assert await names(api, NODES) == ["big"]
    found = await api.get(NODES, "big")
    conditions = {c["type"]: c["status"] for c in found["status"].get("conditions", ())}
    assert (conditions.get("Ready") == "True") is simulate
    assert found["status"]["capacity"]["cpu"] == "96"
