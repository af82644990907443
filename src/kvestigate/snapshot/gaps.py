"""What a snapshot could not read, in whole or in part, and why. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kvestigate.errors import ApiError, Forbidden, NotFound, ServiceUnavailable


class Cause(enum.Enum):
    DENIED = "denied"
    """RBAC forbids it."""
    ABSENT = "absent"
    """The server does not serve this type, for example because metrics-server is not installed."""
    UNAVAILABLE = "unavailable"
    """The aggregated API server of this type does not answer."""
    FAILED = "failed"
    """The API server answered with an error, for example because a conversion webhook is dead."""
    TRUNCATED = "truncated"
    """A snapshot reads only so many objects of this type, and the cluster has more."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A source that could not be read, or the part of a source that was not read."""

    verb: str
    resource: str
    """`pods`, `nodes.metrics.k8s.io`, `/metrics`"""
    cause: Cause
    message: str
    """The server's message; of a truncated list, how many objects were read."""
    read: int | None = None
    """How many objects of a truncated list were read; None for other causes."""
    total: int | None = None
    """How many objects a truncated list has; None if the server does not say."""


def cause_of(error: ApiError) -> Cause:
    return next((cause for kind, cause in _CAUSES if isinstance(error, kind)), Cause.FAILED)


def truncated(verb: str, resource: str, read: int, remaining: int | None) -> Gap:
    """The gap that a bounded list leaves; `remaining` is None if the server does not say."""
    if remaining is None:
        message = f"read {read:,} of at least {read + 1:,}"
        return Gap(verb, resource, Cause.TRUNCATED, message, read)
    total = read + remaining
    return Gap(verb, resource, Cause.TRUNCATED, f"read {read:,} of {total:,}", read, total)


_CAUSES: tuple[tuple[type[ApiError], Cause], ...] = (
    (Forbidden, Cause.DENIED),
    (NotFound, Cause.ABSENT),
    (ServiceUnavailable, Cause.UNAVAILABLE),
)
