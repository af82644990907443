"""An authenticator for servers under test: who has which token, and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.model.user import User
from kvestigate.errors import Unauthorized
from kvestigate.http.message import Request


class StaticTokens:
    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = dict(users)

    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> User:
        scheme, _, token = request.headers.get("authorization").partition(" ")
        user = self._users.get(digest(token.strip())) if scheme.lower() == "bearer" else None
        if user is None:
            raise Unauthorized("Unauthorized")
        return user
