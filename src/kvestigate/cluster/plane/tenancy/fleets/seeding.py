"""The plane that the members of a Fleet are copies of: made, filled, and removed afterwards.

Members come to be in one step, as forks of a plane that has everything already, so there is
never a member with only a part of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kvestigate import errors
from kvestigate.cluster.plane.access.interface import Authorizer
from kvestigate.cluster.plane.admission.rules.fleets import Author
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo
from kvestigate.cluster.plane.model.user import MASTERS, Insider, User
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.tenancy.environment.copying import authorize_copy
from kvestigate.cluster.plane.tenancy.environment.points import past
from kvestigate.cluster.plane.tenancy.fleets.calls import USER, Calls
from kvestigate.cluster.plane.tenancy.fleets.model import Fleet, Origin, Template
from kvestigate.cluster.plane.tenancy.planes import Planes, authorize_elsewhere, missing
from kvestigate.cluster.plane.tenancy.timing import Timing

Scenarios = Callable[[str], Sequence[Mapping[str, Any]]]
"""The objects of a scenario, by its name; an error if there is none of that name."""

_SNAPSHOT = RequestInfo("GET", "/snapshot", "get")
_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount"}
_FIRST = ("CustomResourceDefinition", "Namespace")
"""Kinds that others need, whatever the order in which they are written."""


def no_scenarios(name: str) -> Sequence[Mapping[str, Any]]:
    raise errors.BadRequest(f'scenario: "{name}" is not known: this server has no scenarios')


class Seeder:
    def __init__(
        self, planes: Planes, calls: Calls, authorizer: Authorizer, scenarios: Scenarios
    ) -> None:
        self._planes = planes
        self._calls = calls
        self._authorizer = authorizer
        self._scenarios = scenarios

    @asynccontextmanager
    async def seed(self, fleet: Fleet) -> AsyncIterator[Plane]:
        """A plane with all that the template says, for the length of the block."""
        name = seed_name(fleet)
        await self.discard(fleet)  # of a server that was killed
        try:
            plane, user = await self._start(name, fleet)
            for obj in self._objects(fleet.spec.template):
                await self._apply(plane, dict(obj), Insider(name, user))
            yield plane
        finally:
            await self.discard(fleet)

    async def discard(self, fleet: Fleet) -> None:
        if await self._planes.find(seed_name(fleet)) is not None:
            await self._planes.delete(seed_name(fleet))

    async def _start(self, name: str, fleet: Fleet) -> tuple[Plane, User]:
        """The plane to fill, and the user who may: in a copy, the author of the Fleet.

        A copy has the roles and bindings of its source, so in it the author may do what they
        may do there. A new plane has nobody's data.
        """
        template = fleet.spec.template
        origin = template.from_snapshot
        if template.from_plane:
            origin = Origin(template.from_plane)
        if origin is None:
            virtual = Timing(template.seed) if template.clock == "virtual" else None
            return await self._planes.create(name, virtual), USER
        source = await self._planes.find(origin.cluster_id)
        if source is None:
            raise missing(origin.cluster_id)
        state = past(source, origin.checkpoint, origin.resource_version)
        user = self._authorize(fleet.author, source, state)
        (plane,) = await self._planes.store.fork(source.name, [name], state.revision)
        return plane, user

    def _authorize(self, author: Author | None, source: Plane, start: PlaneState) -> User:
        """The author of a Fleet who may copy the source; Forbidden if they may not."""
        if author is None:
            raise errors.Forbidden("template: the Fleet has no recorded author; apply it again")
        user = author.user.user
        owner = user if author.owner is None else author.owner.user
        if owner != user and MASTERS not in owner.groups:
            raise errors.Forbidden(
                f'template: User "{owner.name}" impersonated "{user.name}": planes are copied '
                "only for those who ask themselves"
            )
        if source.name != ROOT:
            authorize_elsewhere(self._authorizer, source.state, owner, user, _SNAPSHOT)
        authorize_copy(self._authorizer, source.state, start, user)
        return user

    def _objects(self, template: Template) -> list[Mapping[str, Any]]:
        objects: list[Mapping[str, Any]] = []
        if template.scenario:
            objects += self._scenarios(template.scenario)
        objects += template.objects
        return sorted(objects, key=lambda obj: obj.get("kind") not in _FIRST)

    async def _apply(self, plane: Plane, obj: dict[str, Any], who: Insider) -> None:
        kind = _kind_of(plane, obj)
        meta = obj.get("metadata") or {}
        name = meta.get("name") or ""
        if not name:
            raise errors.BadRequest(f"template: a {kind.resource.kind} has no metadata.name")
        namespace = meta.get("namespace") or "default"
        try:
            await self._calls.apply(who, _path(kind, namespace, name), obj)
        except errors.ApiError as error:
            where = f"{namespace}/{name}" if kind.resource.namespaced else name
            raise errors.BadRequest(
                f"template: {kind.resource.kind} {where}: {error.message}"
            ) from None
        if kind.key == ("", "namespaces"):
            # Without it no pod may be created there, and nobody works on the seed who makes it.
            account = {**_ACCOUNT, "metadata": {"name": "default", "namespace": name}}
            await self._apply(plane, account, who)


def seed_name(fleet: Fleet) -> str:
    return f"seed-{fleet.metadata.uid}"


def _kind_of(plane: Plane, obj: Mapping[str, Any]) -> Kind:
    version, name = obj.get("apiVersion"), obj.get("kind")
    for kind in types.of(plane.state):
        if (kind.resource.api_version, kind.resource.kind) == (version, name):
            return kind
    raise errors.BadRequest(f"template: no kind {name!r} in version {version!r}")


def _path(kind: Kind, namespace: str, name: str) -> str:
    resource = kind.resource
    root = f"/apis/{resource.group}" if resource.group else "/api"
    scope = f"/namespaces/{namespace}" if resource.namespaced else ""
    return f"{root}/{resource.version}{scope}/{resource.plural}/{name}"
