"""What an authenticator is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.http.message import Request


class Pledge(Protocol):
    """Credentials that are genuine, and good for as long as what they name exists."""

    def redeem(self, state: PlaneState) -> User:
        """The user they stand for in a plane; Unauthorized if what they name is gone."""


Shown: TypeAlias = User | Pledge


class Authenticator(Protocol):
    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> Shown:
        """Who sent a request to a plane; Unauthorized if nobody known. `now` is asked if need be.

        The plane is not looked at: strangers must not make a server load one.
        """
