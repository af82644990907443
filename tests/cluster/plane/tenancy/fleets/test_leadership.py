"""Servers that share their planes: one of them looks after the Fleets."""

from __future__ import annotations

from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.fleets.calls import Calls
from kvestigate.cluster.plane.tenancy.fleets.controller import FleetController
from kvestigate.cluster.plane.tenancy.fleets.leadership import DURATION, PAUSE, Leadership
from tests.cluster.plane.tenancy.fleets.conftest import Harbour, harbour_of
from tests.virtual_clock import VirtualClock

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kplane-fleets"


def server(store: Store, clock: VirtualClock) -> tuple[Harbour, FleetController]:
    harbour, _ = harbour_of(store, clock)
    calls = Calls(harbour.server.act)
    leadership = Leadership(calls, clock)
    planes = harbour.server.planes
    return harbour, FleetController(planes, calls, AllowAll(), clock, leadership=leadership)


async def holder(harbour: Harbour) -> str:
    found: str = (await harbour.api.get(LEASE)).body["spec"]["holderIdentity"]
    return found


async def test_two_servers_make_each_member_once(clock: VirtualClock) -> None:
    async with Store(MemoryBackend()) as store:
        first, controller = server(store, clock)
        _, other = server(store, clock)
        async with controller.running(), other.running():
            await first.create("crew", replicas=3)
            fleet = await first.settled("crew")

            assert fleet["status"]["readyReplicas"] == 3
            assert await first.planes() == ["crew-0000", "crew-0001", "crew-0002"]


async def test_when_the_leader_is_gone_another_takes_over(clock: VirtualClock) -> None:
    async with Store(MemoryBackend()) as store:
        first, controller = server(store, clock)
        async with controller.running():
            await first.create("crew", replicas=1)
            await first.settled("crew")
            before = await holder(first)

        second, successor = server(store, clock)
        async with successor.running():
            await second.scale("crew", 2)
            for _ in range(round(DURATION / PAUSE) + 1):
                await clock.sleeper()
                clock.advance(PAUSE)
            fleet = await second.settled("crew")

        assert fleet["status"]["readyReplicas"] == 2
        assert await holder(second) != before
