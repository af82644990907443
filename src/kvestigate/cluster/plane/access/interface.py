"""What an authenticator and an authorizer are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.http.message import Request


class BoundCredential(Protocol):
    """A genuine credential that is valid only while the objects it names exist in the plane.

    Service account tokens are such credentials: they end with their account, pod or secret.
    """

    def redeem(self, state: PlaneState) -> User:
        """The user of this credential; Unauthorized if an object that it names is gone."""


Authenticated: TypeAlias = User | BoundCredential
"""The result of authentication: a user, or a credential to check against the plane's state."""


class Authenticator(Protocol):
    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> Authenticated:
        """The sender of a request; Unauthorized if the credentials are missing or unknown.

        Only the plane's name is given: a request without valid credentials must not cause the
        server to load a plane. `now` is called only for credentials that expire.
        """


class Authorizer(Protocol):
    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        """Return if the user may make the request; else raise Forbidden."""


class AllowAll:
    """An authorizer that allows everything, for a plane whose only user is its owner."""

    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        return None
