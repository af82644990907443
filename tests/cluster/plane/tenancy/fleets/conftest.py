"""A server that looks after Fleets, on a clock that tests move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy.fleets.calls import Calls
from kvestigate.cluster.plane.tenancy.fleets.controller import PATH, FleetController
from kvestigate.cluster.plane.tenancy.fleets.model import FLEETS
from kvestigate.errors import BadRequest
from tests.cluster.plane.conftest import ADMIN, TOKEN, Answer, Api
from tests.static_tokens import StaticTokens
from tests.virtual_clock import VirtualClock

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seeded"}}


def scenarios(name: str) -> Sequence[Mapping[str, Any]]:
    if name != "one-map":
        raise BadRequest(f'scenario: "{name}" is not known')
    return [{**MAP, "data": {"from": "scenario"}}]


class Harbour:
    """Where fleets are."""

    def __init__(self, server: ApiServer, clock: VirtualClock) -> None:
        self.api = Api(server)
        self.server = server
        self.clock = clock

    def inside(self, plane: str) -> Api:
        return Api(self.server, f"/clusters/{plane}/control-plane")

    async def create(self, name: str, **spec: Any) -> Answer:
        fleet = {
            "apiVersion": "kplane.dev/v1",
            "kind": "Fleet",
            "metadata": {"name": name},
            "spec": spec,
        }
        return await self.api.post(PATH, fleet)

    async def scale(self, name: str, replicas: int) -> Answer:
        return await self.api.patch(f"{PATH}/{name}", {"spec": {"replicas": replicas}})

    async def until(self, name: str, met: Callable[[Any], bool]) -> Any:
        """The Fleet once `met` holds; None stands for one that is gone."""
        root = await self.server.planes.open("root")
        with root.subscribe(FLEETS) as subscription:
            while True:
                found = await self.api.get(f"{PATH}/{name}")
                fleet = found.body if found.status == 200 else None
                if met(fleet):
                    return fleet
                await anext(subscription)

    async def settled(self, name: str) -> Any:
        """The Fleet once its present generation has been dealt with."""
        return await self.until(name, is_settled)

    async def planes(self) -> list[str]:
        listed = (await self.api.get("/clusters")).body["items"]
        return [item["id"] for item in listed if item["id"] != "root"]


def is_settled(fleet: Any) -> bool:
    status = fleet.get("status") or {}
    members = status.get("members") or []
    return (
        status.get("observedGeneration") == fleet["metadata"]["generation"]
        and all(member["phase"] != "Pending" for member in members)
        and len(members) == fleet["spec"]["replicas"]
    )


def harbour_of(store: Store, clock: VirtualClock) -> tuple[Harbour, FleetController]:
    users = {digest(TOKEN): ADMIN}
    server = ApiServer(store, StaticTokens(users), AllowAll(), clock=clock, random=Random(1))
    calls = Calls(server.act)
    controller = FleetController(server.planes, calls, AllowAll(), clock, scenarios)
    return Harbour(server, clock), controller


@pytest.fixture
def backend() -> Backend:
    return MemoryBackend()


@pytest.fixture
async def harbour(backend: Backend, clock: VirtualClock) -> AsyncIterator[Harbour]:
    async with Store(backend) as store:
        made, controller = harbour_of(store, clock)
        async with controller.running():
            yield made


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_800_000_000.0)
