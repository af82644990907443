"""What an authorizer is."""

from __future__ import annotations

from typing import Protocol

from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.state import PlaneState


class Authorizer(Protocol):
    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        """Return if the user may; raise Forbidden, saying which verb on which resource, if not."""


class AllowAll:
    """For planes whose only users are trusted: one person's own embedded cluster."""

    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        return None
