"""Nodes without processes, on a clock that the test moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kvestigate.aio.clock import WALL
from kvestigate.client.api import PODS, Api
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.agent.fleet import Fleet
from kvestigate.cluster.node.agent.registration import NODES
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.model import Load, node_gpus
from kvestigate.cluster.node.hosts.interface import Launch, LaunchFailed, RunKey, Usage
from kvestigate.cluster.node.hosts.simulated import (
    SimulatedHost,
    performance_of,
    simulated_usage,
)
from kvestigate.node_access.guard import tells_of_no_shell
from tests.cluster.node.conftest import (
    in_phase,
    is_ready,
    lone_agent,
    pod,
    state_of,
    until,
    until_gone,
)
from tests.cluster.node.kubelet import Kubelet
from tests.virtual_clock import VirtualClock

START = 1_750_000_000.0


@pytest.mark.parametrize(
    ("argv", "env", "expected"),
    [
        ((), {}, None),
        (("nginx",), {}, None),
        (("sleep", "30"), {}, (30.0, 0)),
        (("sleep", "infinity"), {}, None),
        (("true",), {}, (0.0, 0)),
        (("false",), {}, (0.0, 1)),
        (("train.py",), {"SIMULATE_SECONDS": "5", "SIMULATE_EXIT_CODE": "3"}, (5.0, 3)),
        (("train.py",), {"SIMULATE_SECONDS": "soon"}, None),
        (("sh", "-c", "sleep 2; exit 4"), {}, (2.0, 4)),
    ],
)
def test_how_long_a_container_runs(
    argv: tuple[str, ...], env: dict[str, str], expected: tuple[float, int] | None
) -> None:
    played = performance_of(Launch(RunKey("p", "c", 0), argv, env))
    lifetime = None if played.ends_at is None else (played.ends_at, played.code)
    assert lifetime == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, Usage()),
        ({"SIMULATE_CPU": "250m"}, Usage(15.0)),
        ({"SIMULATE_CPU": "2", "SIMULATE_MEMORY": "1Gi"}, Usage(120.0, 1024**3)),
        ({"SIMULATE_CPU": "much"}, Usage()),
    ],
)
def test_what_a_container_uses(env: dict[str, str], expected: Usage) -> None:
    assert simulated_usage(env, 60.0) == expected


async def test_the_gpus_of_a_pod_that_ended_are_for_the_next_one(api: Api) -> None:
    gpus = node_gpus("here", 1, "L4")
    async with lone_agent(api, SimulatedHost(WALL), NodeConfig("here", gpus=gpus)):
        wanted = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
        first = {"image": "a", "command": ["true"], **wanted}
        await api.create(PODS, pod("first", first, restartPolicy="Never"))
        await until(api, "first", in_phase("Succeeded"))
        await api.create(PODS, pod("second", {"image": "b", **wanted}))
        await until(api, "second", is_ready)


async def test_a_pod_lives_by_the_clock(api: Api) -> None:
    clock = VirtualClock(START)
    async with lone_agent(api, SimulatedHost(clock), NodeConfig("here"), clock=clock):
        main = {"image": "nginx", "env": [{"name": "SIMULATE_SECONDS", "value": "3600"}]}
        await api.create(PODS, pod("p", main, restartPolicy="Never"))
        running = await until(api, "p", is_ready)
        assert state_of(running) == {"running": {"startedAt": "2025-06-15T15:06:40Z"}}
        clock.advance(3600)
        done = await until(api, "p", in_phase("Succeeded"))
        assert state_of(done)["terminated"]["finishedAt"] == "2025-06-15T16:06:40Z"


async def test_an_image_that_nobody_pushed_is_not_run(api: Api) -> None:
    config = NodeConfig("here", missing_images=("nginx:lates",))
    async with lone_agent(api, SimulatedHost(WALL), config):
        await api.create(PODS, pod("p", {"image": "nginx:lates"}))

        def refused(seen: dict[str, Any]) -> bool:
            waiting = state_of(seen).get("waiting", {})
            return (
                waiting.get("reason") == "ImagePullBackOff" and "nginx:lates" in waiting["message"]
            )

        await until(api, "p", refused)


async def test_back_off_passes_in_no_time(api: Api) -> None:
    clock = VirtualClock(START)
    async with lone_agent(api, SimulatedHost(clock), NodeConfig("here"), clock=clock):
        await api.create(PODS, pod("p", {"command": ["false"]}))
        for restarts, pause in ((1, 10), (2, 20), (3, 40)):
            await until(api, "p", _backing_off(restarts))
            clock.advance(pause)
        await until(api, "p", _backing_off(4))


async def test_deletion_is_answered(api: Api) -> None:
    async with lone_agent(api, SimulatedHost(WALL), NodeConfig("here")):
        await api.create(PODS, pod("p", {"image": "nginx"}))
        await until(api, "p", is_ready)
        await api.delete(PODS, "p")
        await until_gone(api, "p")


@pytest.mark.parametrize(
    ("terse", "finalizers", "told"),
    [(False, [], True), (True, [], False), (True, ["example.com/hold"], True)],
)
async def test_the_end_of_a_deleted_pod_is_told_where_somebody_reads_it(
    api: Api, terse: bool, finalizers: list[str], told: bool
) -> None:
    phases = []
    async with lone_agent(api, SimulatedHost(WALL), NodeConfig("here", terse=terse)):
        body = pod("p", {"image": "nginx"})
        body["metadata"]["finalizers"] = finalizers
        await api.create(PODS, body)
        await until(api, "p", is_ready)
        async with api.watch(PODS) as watch:
            await api.delete(PODS, "p")
            async for event in watch:
                phases.append(event.object["status"]["phase"])
                if event.type == "DELETED" or phases[-1] == "Failed":
                    break
        if finalizers:
            await api.patch(PODS, "p", {"metadata": {"finalizers": None}})
        await until_gone(api, "p")
    assert ("Failed" in phases) == told


async def test_scripted_commands_answer(api: Api) -> None:
    gpus = node_gpus("here", 2, "L4", (Load.BUSY,))
    async with lone_agent(api, SimulatedHost(WALL), NodeConfig("here", gpus=gpus)) as agent:
        limits = {"limits": {"nvidia.com/gpu": "1"}}
        await api.create(PODS, pod("p", {"image": "nginx", "resources": limits}))
        await until(api, "p", is_ready)
        assert await _run(agent, "hostname") == b"p\n"
        assert (await _run(agent, "uname", "-r")).endswith(b"simulated\n")
        assert await _run(agent, "chroot", "/host", "hostname") == b"p\n"
        assert await _run(agent, "nvidia-smi", "-L") == (
            f"GPU 0: NVIDIA L4 (UUID: {gpus[0].uuid})\n".encode()
        )


async def test_what_is_not_played_is_refused_with_what_is() -> None:
    host = SimulatedHost(WALL)
    process = await host.start(Launch(RunKey("p", "c", 0), ("sleep", "infinity"), {}))
    with pytest.raises(LaunchFailed, match=r"knows only cat, .*, pwd, sh,") as refused:
        await host.enter(process, ("sh", "-c", "ls | wc -l"), tty=False, stdin=False)
    assert tells_of_no_shell(refused.value.message)


async def test_a_fleet_shares_one_watch(api: Api) -> None:
    nodes = [(NodeConfig(f"n{index}", workers=1), SimulatedHost(WALL)) for index in range(20)]
    async with Fleet(api, nodes) as fleet:
        listed = await api.list(NODES)
        assert {node["metadata"]["name"] for node in listed.items} == {
            config.name for config, _ in nodes
        }
        assert len({agent.address for agent in fleet.agents}) == 20
        for index in range(40):
            made = pod(f"p{index}", {"image": "nginx"}, nodeName=f"n{index % 20}")
            await api.create(PODS, made)
        await asyncio.gather(*(until(api, f"p{index}", is_ready) for index in range(40)))
        assert [len(agent.workers) for agent in fleet.agents] == [2] * 20


def _restarts(found: Any) -> int:
    return sum(one["restartCount"] for one in found["status"].get("containerStatuses", []))


def _backing_off(restarts: int) -> Any:
    def reached(found: Any) -> bool:
        waiting = state_of(found).get("waiting", {}).get("reason") == "CrashLoopBackOff"
        return waiting and _restarts(found) == restarts

    return reached


async def _run(agent: Agent, *command: str) -> bytes:
    query = "&".join(["output=1", *(f"command={word}" for word in command)])
    async with Kubelet(agent) as kubelet:
        socket = await kubelet.open("/exec/default/p/main", query, "v5.channel.k8s.io")
        said = b""
        while (message := await socket.receive()) is not None:
            assert isinstance(message, bytes)
            said += message[1:] if message[0] == 1 else b""
    return said
