"""`fleet create|scale|status|delete`: many planes, declared as one object."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.errors import InputError
from kvestigate.kube.resources import Resource
from kvestigate.kube.yaml_documents import load
from kvestigate.operation import param
from kvestigate.planes.manage import ClockChoice, Seed, ask
from kvestigate_client import contract

_FLEETS = Resource("kplane.dev", "v1", "fleets", "Fleet", namespaced=False)
_PATIENCE = 60.0

Progress = Callable[[str, int, int], None]
"""Called with `planes`, how many are ready, and of how many."""


FleetName = Annotated[str, param("The fleet.", argument=True)]


def _manifests(paths: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """The objects of manifest files."""
    found: list[dict[str, Any]] = []
    for path in paths:
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=path) from None
        for document in load(text, source=path):
            if not isinstance(document.value, dict):
                raise InputError("is not a manifest with apiVersion and kind", where=path)
            found.append(document.value)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class NewFleet:
    name: FleetName
    replicas: Annotated[int, param("Number of members.", lowest=0, highest=10_000)] = 1
    prefix: Annotated[str, param("Prefix of the ids of members; NAME- if not given.")] = ""
    ttl: (
        Annotated[
            int,
            param(
                "Delete the fleet and its members after this time.",
                metavar="SECONDS",
                lowest=1,
                highest=10**9,
            ),
        ]
        | None
    ) = None
    from_plane: Annotated[str, param("Members are copies of this plane.", metavar="ID")] = ""
    scenario: Annotated[str, param("Members start with the objects of this scenario.")] = ""
    objects: Annotated[
        tuple[dict[str, Any], ...],
        param(
            "Members start with the objects of this manifest file.",
            "--file",
            metavar="PATH",
            parse=_manifests,
        ),
    ] = ()
    clock: ClockChoice = "wall"
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    name: FleetName
    replicas: Annotated[int, param("Number of members.", "--replicas", lowest=0, highest=10_000)]


@dataclass(frozen=True, slots=True)
class FleetOptions:
    name: FleetName


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


async def create(access: Access, options: NewFleet, progress: Progress | None = None) -> Fleet:
    """Declare the fleet, and wait until its members are ready."""
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
    return await settled(access, msgspec.json.decode(answer, type=Fleet), progress)


async def scale(access: Access, options: ScaleOptions, progress: Progress | None = None) -> Fleet:
    """Declare another number of members, and wait until it is so."""
    answer = await ask(access, contract.scale_fleet, options.name, options.replicas)
    return await settled(access, msgspec.json.decode(answer, type=Fleet), progress)


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
