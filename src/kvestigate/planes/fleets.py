"""`fleet create|scale|status|delete`: many planes, declared as one object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Struct

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.kube.resources import Resource
from kvestigate.operation import Effect, Operation
from kvestigate.planes.manage import ask
from kvestigate_client import contract
from kvestigate_client.contract import Clock

_FLEETS = Resource("kplane.dev", "v1", "fleets", "Fleet", namespaced=False)
_PATIENCE = 60.0

Progress = Callable[[str, int, int], None]
"""Called with `planes`, how many are ready, and of how many."""


@dataclass(frozen=True, slots=True)
class NewFleet:
    name: str
    replicas: int = 1
    prefix: str = ""
    """Prefix of the ids of members; the name and a hyphen if empty."""
    ttl: int | None = None
    """Seconds after which the fleet is deleted with its members."""
    from_plane: str = ""
    """The plane that members are copies of."""
    scenario: str = ""
    """The scenario whose objects members start with."""
    objects: tuple[dict[str, Any], ...] = ()
    """Manifests that members start with."""
    clock: Clock = "wall"
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    name: str
    replicas: int


@dataclass(frozen=True, slots=True)
class FleetOptions:
    name: str


@dataclass(frozen=True, slots=True)
class Deleted:
    name: str
    gone: bool
    """False: members are still being deleted."""


class Member(Struct, frozen=True, rename={"cluster_id": "clusterID"}, omit_defaults=True):
    cluster_id: str
    phase: str
    message: str = ""


class Condition(Struct, frozen=True):
    type: str
    status: str
    reason: str = ""
    message: str = ""


class Status(Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    ready_replicas: int = 0
    members: list[Member] = []
    conditions: list[Condition] = []


class Spec(Struct, frozen=True):
    replicas: int = 1


class Metadata(Struct, frozen=True):
    name: str
    generation: int = 0


class Fleet(Struct, frozen=True):
    metadata: Metadata
    spec: Spec = Spec()
    status: Status = Status()

    def is_settled(self, generation: int) -> bool:
        """Whether nothing of that generation is left to be made or removed."""
        members = self.status.members
        return (
            self.status.observed_generation >= generation
            and len(members) == self.spec.replicas
            and all(member.phase != "Pending" for member in members)
        )


async def create(access: Access, options: NewFleet) -> Fleet:
    template: dict[str, Any] = {}
    if options.from_plane:
        template["fromPlane"] = options.from_plane
    if options.scenario:
        template["scenario"] = options.scenario
    if options.objects:
        template["objects"] = list(options.objects)
    if options.clock == "virtual":
        template |= {"clock": options.clock, "seed": options.seed}
    answer = await ask(
        access,
        contract.create_fleet,
        options.name,
        options.replicas,
        template=template,
        name_prefix=options.prefix,
        ttl_seconds=options.ttl,
    )
    return msgspec.json.decode(answer, type=Fleet)


async def scale(access: Access, options: ScaleOptions) -> Fleet:
    answer = await ask(access, contract.scale_fleet, options.name, options.replicas)
    return msgspec.json.decode(answer, type=Fleet)


async def settled(access: Access, declared: Fleet, progress: Progress | None = None) -> Fleet:
    """The fleet once all members are as declared, or its last state after a minute."""
    latest = declared
    named = Selection(fields=f"metadata.name={declared.metadata.name}")
    try:
        async with (
            asyncio.timeout(_PATIENCE),
            connect(access) as api,
            api.watch(_FLEETS, named, type=Fleet) as events,
        ):
            async for event in events:
                latest = event.object
                if progress is not None:
                    progress("planes", latest.status.ready_replicas, latest.spec.replicas)
                if latest.is_settled(declared.metadata.generation):
                    break
    except TimeoutError:
        pass  # the status that is shown says how many are ready
    return latest


async def status(access: Access, options: FleetOptions) -> Fleet:
    return msgspec.json.decode(await ask(access, contract.get_fleet, options.name), type=Fleet)


async def delete(access: Access, options: FleetOptions) -> Deleted:
    """Delete the fleet and wait until its last member is gone."""
    await ask(access, contract.delete_fleet, options.name)
    named = Selection(fields=f"metadata.name={options.name}")
    try:
        async with asyncio.timeout(_PATIENCE), connect(access) as api:
            page = await api.list(_FLEETS, named, type=Fleet)
            if page.items:
                await _until_deleted(api, named, page.metadata.resource_version)
    except TimeoutError:
        return Deleted(options.name, gone=False)
    return Deleted(options.name, gone=True)


async def _until_deleted(api: Api, named: Selection, version: str) -> None:
    async with api.watch(_FLEETS, named, resource_version=version, type=Fleet) as events:
        async for event in events:
            if event.type == "DELETED":
                return


CREATE = Operation(
    name="fleet.create",
    summary="Create a fleet of identical planes.",
    input=NewFleet,
    output=Fleet,
    effect=Effect.WRITE,
    handler=create,
)
SCALE = Operation(
    name="fleet.scale",
    summary="Set the number of members of a fleet.",
    input=ScaleOptions,
    output=Fleet,
    effect=Effect.DESTROY,
    handler=scale,
)
STATUS = Operation(
    name="fleet.status",
    summary="Show the members of a fleet and their phases.",
    input=FleetOptions,
    output=Fleet,
    effect=Effect.READ,
    handler=status,
)
DELETE = Operation(
    name="fleet.delete",
    summary="Delete a fleet with all its members.",
    input=FleetOptions,
    output=Deleted,
    effect=Effect.DESTROY,
    handler=delete,
)

OPERATIONS = (CREATE, SCALE, STATUS, DELETE)
