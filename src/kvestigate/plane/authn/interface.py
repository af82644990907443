"""What an authenticator is."""

from __future__ import annotations

from typing import Protocol

from kvestigate.plane.authn.user import User
from kvestigate.plane.store.state import PlaneState
from kvestigate.wire.message import Request


class Authenticator(Protocol):
    def authenticate(self, request: Request, plane: str, state: PlaneState, now: float) -> User:
        """The user behind a request to a plane; Unauthorized if there is none."""
