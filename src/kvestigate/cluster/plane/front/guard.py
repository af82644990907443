"""The filters before every route: who asks, as whom, and whether they may."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvestigate.cluster.plane.access.authn import impersonation
from kvestigate.cluster.plane.access.interface import Authenticator, Authorizer
from kvestigate.cluster.plane.model.plane_paths import ROOT
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.tenancy.planes import Planes, missing
from kvestigate.http.message import Request

MUST_EXIST = "x-plane-must-exist"
"""A header of those who know that they have made the plane: one that was deleted meanwhile must
not come back empty because somebody has not heard of it."""


@dataclass(slots=True)
class Visit:
    """What came to light about a request on its way through the filters."""

    plane: str = ""
    info: RequestInfo | None = None
    user: User | None = None
    """Whose credentials came with it; None for a stranger."""
    acting: User | None = None
    """As whom it is made, if that is another user."""
    allowed: bool = False
    notes: dict[str, str] = field(default_factory=dict)
    """What admission has to say of it, for the audit log."""


class Guard:
    def __init__(
        self, planes: Planes, authenticator: Authenticator, authorizer: Authorizer
    ) -> None:
        self._planes = planes
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def admit(
        self, visit: Visit, info: RequestInfo, incoming: Request, *, makes: bool = True
    ) -> tuple[Plane, User]:
        """The plane and as whom to act in it; ApiError for whoever may not.

        A plane that is not there is made, unless who asks wants none: else NotFound.
        """
        name = visit.plane
        # Strangers must not make us load a plane, nor anybody make one by what they may not do.
        plane = self._planes.store.loaded(name)
        times, there = self._planes.times, plane
        shown = visit.user or self._authenticator.authenticate(
            incoming, name, lambda: times.clock(there).now()
        )
        if plane is None:
            plane = await self._planes.find(name)
        state = self._planes.template if plane is None else plane.state
        user = visit.user = shown if isinstance(shown, User) else shown.redeem(state)
        if (target := impersonation.wanted(incoming.headers)) is not None:
            user = visit.acting = impersonation.impersonate(
                self._authorizer, state, user, target, info
            )
        self._authorizer.authorize(state, user, info)
        visit.allowed = True
        if plane is None:
            if not makes or (incoming.headers.get(MUST_EXIST) == "true" and name != ROOT):
                raise missing(name)
            plane = await self._planes.open(name)
        return plane, user
