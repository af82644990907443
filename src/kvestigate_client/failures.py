"""Requests that failed, as exceptions.

PlaneError
x NotFound            404
x Forbidden           401, 403
x Conflict            409: it is there already, or was changed meanwhile
x Gone                410: a revision that is forgotten
x Invalid             400, 422
x Unreachable         no answer at all
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class PlaneError(Exception):
    """A request that failed; `status` is the Kubernetes Status that says why."""

    def __init__(self, message: str, code: int = 0, status: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = dict(status or {})

    @property
    def reason(self) -> str:
        """`NotFound`, `AlreadyExists`, ..."""
        return str(self.status.get("reason", ""))


class NotFound(PlaneError):
    pass


class Forbidden(PlaneError):
    pass


class Conflict(PlaneError):
    pass


class Gone(PlaneError):
    pass


class Invalid(PlaneError):
    pass


class Unreachable(PlaneError):
    pass


_BY_CODE: Mapping[int, type[PlaneError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def failure(code: int, status: Any) -> PlaneError:
    """The exception for an answer that is not a success."""
    told = status if isinstance(status, dict) else {}
    message = str(told.get("message") or f"the server answered {code}")
    return _BY_CODE.get(code, PlaneError)(message, code, told)
