"""Bearer tokens known by their hash."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from kvestigate.errors import Unauthorized
from kvestigate.plane.authn.user import User
from kvestigate.wire.message import Request


def digest(token: str) -> str:
    """The form in which tokens are kept: sha256, hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


class StaticTokens:
    """Tokens that the operator handed out; compared by hash, so lookup time reveals nothing."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = dict(users)

    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> User:
        scheme, _, token = request.headers.get("authorization").partition(" ")
        user = self._users.get(digest(token.strip())) if scheme.lower() == "bearer" else None
        if user is None:
            raise Unauthorized("Unauthorized")
        return user
