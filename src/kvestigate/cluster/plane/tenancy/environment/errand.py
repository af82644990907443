"""One request about a plane as a whole: everything its answer may need."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import msgspec

from kvestigate import errors
from kvestigate.aio.clock import Clock
from kvestigate.cluster.plane.access.interface import Authorizer
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.request.fairness import Fairness
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.tenancy.planes import Planes, authorize_elsewhere
from kvestigate.http.message import Request

T = TypeVar("T")

_TRUTHS = {"": False, "1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Errand:
    planes: Planes
    plane: Plane
    info: RequestInfo
    user: User
    """The user that the request acts as."""
    owner: User
    """The user whose credentials were sent; differs from `user` under impersonation."""
    request: Request
    clock: Clock
    random: Random
    authorizer: Authorizer
    fairness: Fairness

    async def pause(self) -> None:
        """Let others have their turn: to be called after every half millisecond of work."""
        await self.fairness.pause(self.plane.name)

    def breathe(self) -> Awaitable[None]:
        """Between two steps: let others have their turn if the steps so far took long."""
        return self.fairness.breathe(self.plane.name)

    def flag(self, name: str) -> bool:
        value = self.info.params.get(name, "")
        truth = _TRUTHS.get(value.lower())
        if truth is None:
            raise errors.BadRequest(f'{name}: "{value}" is neither true nor false')
        return truth

    def body(self, type: type[T]) -> T:
        """The JSON that was sent; nothing at all is an empty object."""
        try:
            return msgspec.json.decode(self.request.body.strip() or b"{}", type=type)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise errors.BadRequest(f"the body does not fit: {error}") from None

    def may(self, state: PlaneState, info: RequestInfo) -> bool:
        try:
            self.authorizer.authorize(state, self.user, info)
        except errors.Forbidden:
            return False
        return True

    def require_elsewhere(self, state: PlaneState, info: RequestInfo) -> None:
        """Forbidden, unless the request may also do this in another plane."""
        authorize_elsewhere(self.authorizer, state, self.owner, self.user, info)
