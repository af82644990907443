"""When probe results add up to a verdict, and when there are any."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.client.recorder import EVENTS
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.simulated import SimulatedHost
from kvestigate.cluster.node.pods.probes import Tally
from tests.cluster.node.conftest import Object, in_phase, is_ready, lone_agent, pod, until
from tests.virtual_clock import VirtualClock

PASSES = {"exec": {"command": ["hostname"]}}
FAILS = {"exec": {"command": ["not-there"]}, "failureThreshold": 1}


@pytest.mark.parametrize(
    ("results", "verdicts"),
    [
        ("+", [True]),
        ("---", [None, None, False]),
        ("--+---", [None, None, True, None, None, False]),
        ("----", [None, None, False, False]),
    ],
)
def test_failures_count_only_in_a_row(results: str, verdicts: list[bool | None]) -> None:
    tally = Tally(success_threshold=1, failure_threshold=3)
    assert [tally.observe(result == "+") for result in results] == verdicts


def test_success_can_need_several_in_a_row() -> None:
    tally = Tally(success_threshold=2, failure_threshold=1)
    assert [tally.observe(ok) for ok in (True, False, True, True)] == [None, False, None, True]


def restarted(found: Object) -> bool:
    statuses: list[dict[str, Any]] = found.get("status", {}).get("containerStatuses", [])
    return any(one["restartCount"] for one in statuses)


async def turns_of_the_loop() -> None:
    """Enough of them for whoever was woken to go to sleep again."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_delay_counts_from_the_start_of_the_container(api: Api) -> None:
    """What the startup probe took is not waited for again."""
    clock = VirtualClock(1_750_000_000.0)
    delayed = {**PASSES, "initialDelaySeconds": 30}
    async with lone_agent(api, SimulatedHost(clock), NodeConfig("here"), clock=clock):
        await api.create(PODS, pod("p", {"startupProbe": delayed, "readinessProbe": delayed}))
        await until(api, "p", in_phase("Running"))
        clock.advance(30)
        await until(api, "p", is_ready)


@pytest.mark.parametrize("probe", ["livenessProbe", "startupProbe"])
async def test_what_is_being_ended_is_not_probed_for_life(api: Api, probe: str) -> None:
    clock = VirtualClock(1_750_000_000.0)
    main = {probe: FAILS, "lifecycle": {"preStop": {"sleep": {"seconds": 60}}}}
    async with lone_agent(api, SimulatedHost(clock), NodeConfig("here"), clock=clock):
        await api.create(PODS, pod("p", main, terminationGracePeriodSeconds=100))
        async with api.watch(EVENTS) as events:
            async for event in events:
                if event.object["reason"] == "Killing":
                    break
        for _ in range(6):
            clock.advance(10)
            await turns_of_the_loop()
        await until(api, "p", restarted)
        found = (await api.list(EVENTS)).items
    counts = [one.get("count", 1) for one in found if one["reason"] == "Unhealthy"]
    assert sum(counts) <= 2  # of the run that was ended, and of the one after it
