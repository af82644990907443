"""What an authorizer is."""

from __future__ import annotations

from typing import Protocol

from kvestigate.plane.authn.user import User
from kvestigate.plane.request import Asked
from kvestigate.plane.store.state import PlaneState


class Authorizer(Protocol):
    def authorize(self, state: PlaneState, user: User, asked: Asked) -> None:
        """Return if the user may; raise Forbidden, saying which verb on which resource, if not."""


class AllowAll:
    """For planes whose only users are trusted: one person's own embedded cluster."""

    def authorize(self, state: PlaneState, user: User, asked: Asked) -> None:
        return None
