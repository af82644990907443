"""What an authenticator is."""

from __future__ import annotations

from typing import Protocol

from kvestigate.plane.authn.user import User
from kvestigate.wire.message import Request


class Authenticator(Protocol):
    async def authenticate(self, request: Request, plane: str) -> User:
        """The user behind a request to a plane; Unauthorized if there is none."""
