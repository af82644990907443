"""The filters before every request: authentication, impersonation, authorization."""

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
"""A header with the value `true`: do not create the plane if it does not exist.

Clients that created a plane send it, so that a plane that was deleted meanwhile does not come
back empty with their next request."""


@dataclass(slots=True)
class Visit:
    """What the server knows of one request; filled in on the way through the filters.

    The audit log reads it, also for requests that were refused half-way.
    """

    plane: str = ""
    info: RequestInfo | None = None
    user: User | None = None
    """The authenticated user; None until authentication succeeds."""
    impersonated: User | None = None
    """The user that the request is made as, if `user` impersonates another one."""
    allowed: bool = False
    """Whether the authorizer allowed the request."""
    notes: dict[str, str] = field(default_factory=dict)
    """Audit annotations that admission policies and webhooks add."""


class Guard:
    def __init__(
        self, planes: Planes, authenticator: Authenticator, authorizer: Authorizer
    ) -> None:
        self._planes = planes
        self._authenticator = authenticator
        self._authorizer = authorizer

    async def admit(
        self, visit: Visit, info: RequestInfo, incoming: Request, *, create_missing: bool = True
    ) -> tuple[Plane, User]:
        """The plane of a request and the user to act as; ApiError if the user may not.

        A plane that does not exist is created, but only after authorization (against the state
        that a new plane has). Without `create_missing`, or with the header MUST_EXIST, it is
        NotFound.
        """
        name = visit.plane
        # Authenticate before the plane is loaded: an unknown client must not cause disk reads.
        loaded = plane = self._planes.store.loaded(name)
        credential = visit.user or self._authenticator.authenticate(
            incoming, name, lambda: self._planes.times.clock(loaded).now()
        )
        if plane is None:
            plane = await self._planes.find(name)
        state = self._planes.template if plane is None else plane.state
        user = credential if isinstance(credential, User) else credential.redeem(state)
        visit.user = user
        if (target := impersonation.requested_user(incoming.headers)) is not None:
            user = visit.impersonated = impersonation.impersonate(
                self._authorizer, state, user, target, info
            )
        self._authorizer.authorize(state, user, info)
        visit.allowed = True
        if plane is None:
            if not create_missing or (incoming.headers.get(MUST_EXIST) == "true" and name != ROOT):
                raise missing(name)
            plane = await self._planes.open(name)
        return plane, user
