"""The planes of a server: opened by name, made on first touch."""

from __future__ import annotations

from collections.abc import Callable

from kvestigate.aio.clock import Clock
from kvestigate.cluster.plane.access.interface import Authorizer
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.errors import NoPlane, PlaneExists
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState, apply
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.tenancy import timing
from kvestigate.cluster.plane.tenancy.bootstrap import template
from kvestigate.cluster.plane.tenancy.stepping import Idle, Workforce
from kvestigate.cluster.plane.tenancy.timing import Times, Timing
from kvestigate.errors import Forbidden, NotFound


class Planes:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.template = template(clock.now())
        """The state of a new plane."""
        self.times = Times(clock)
        self.workforce: Workforce = Idle()
        """Runs controllers: steps planes with a virtual clock, and may work on the others."""
        self.on_delete: list[Callable[[str], None]] = []
        """Called with the name of every plane that is deleted."""

    async def find(self, name: str) -> Plane | None:
        """The plane of that name, if there is one."""
        plane = self.store.loaded(name)
        if plane is not None:
            return plane
        try:
            return await self.store.plane(name)
        except NoPlane:
            return None

    async def root_state(self) -> PlaneState:
        """The state of the root plane, whose RBAC decides who may create planes."""
        root = await self.find(ROOT)
        return self.template if root is None else root.state

    async def open(self, name: str) -> Plane:
        """The plane of that name; a new one is bootstrapped and shares all it starts with."""
        while (plane := await self.find(name)) is None:
            try:
                return await self.create(name)
            except PlaneExists:
                continue
        return plane

    async def create(self, name: str, virtual: Timing | None = None) -> Plane:
        """A new plane, bootstrapped; PlaneExists if there is one of that name.

        With `virtual` it has its own time, which only steps move, and its own seed.
        """
        if virtual is None:
            return await self.store.create(name, self.template)
        start = template(virtual.now)
        _, start = apply(start, [timing.put(start, virtual)], actor="", now=virtual.now)
        return await self.store.create(name, start)

    async def delete(self, name: str) -> None:
        """Remove a plane with everything in it; NoPlane if there is none."""
        self.workforce.dismiss(name)  # or they would write to it, and so make it anew
        await self.store.delete(name)
        self.workforce.dismiss(name)
        for tell in self.on_delete:
            tell(name)


CREATION = RequestInfo("POST", "/clusters", "post")
"""The request of the root plane whose permission is the right to create planes in any way."""
_SERVICE_ACCOUNT = "system:serviceaccount:"


def authorize_creation(authorizer: Authorizer, root: PlaneState, owner: User, user: User) -> None:
    """Forbidden, unless a request to another plane may create planes."""
    authorize_elsewhere(authorizer, root, owner, user, CREATION)


def authorize_elsewhere(
    authorizer: Authorizer, state: PlaneState, owner: User, user: User, info: RequestInfo
) -> None:
    """Forbidden, unless `owner` acting as `user` in one plane may do this in another one.

    Service accounts are of one plane, and whom somebody may impersonate is a matter of one plane
    too, so in another one neither counts for anything.
    """
    if owner.name.startswith(_SERVICE_ACCOUNT):
        raise Forbidden(
            f'forbidden: User "{owner.name}" is of one plane and cannot {info.verb} path '
            f'"{info.path}" in another',
            details={},
        )
    for each in (owner, user):
        authorizer.authorize(state, each, info)


def missing(name: str) -> NotFound:
    """The error for a request about a plane that does not exist."""
    return NotFound(f'clusters "{name}" not found', details={"name": name, "kind": "clusters"})
