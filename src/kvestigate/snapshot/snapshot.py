"""One cluster at one moment: what was read, and what could not be.

`take` reads each source once, a few at a time. A refusal is recorded as a `Gap` and the
rest goes on; that nobody answers, or that we are not known at all, is a failure.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from kvestigate.aio.groups import one_failure
from kvestigate.client.api import Api
from kvestigate.errors import ApiError, Forbidden, NotFound, ServiceUnavailable
from kvestigate.snapshot.source import Progress, Source

T = TypeVar("T")

# Each list has a few requests of its own under way already.
_TOGETHER = 4


class Cause(enum.Enum):
    DENIED = "denied"
    """RBAC does not let us."""
    ABSENT = "absent"
    """The server does not have this type: metrics-server is not installed, say."""
    UNAVAILABLE = "unavailable"
    """Another server should answer for this type, and does not."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the snapshot lacks."""

    verb: str
    resource: str
    """`pods`, `nodes.metrics.k8s.io`, `/metrics`"""
    cause: Cause
    message: str
    """What the server said."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    captured_at: datetime
    """UTC."""
    listed: dict[Source[Any], tuple[Any, ...]] = field(default_factory=dict)
    gaps: dict[Source[Any], Gap] = field(default_factory=dict)
    namespace: str = ""
    """What is in other namespaces was not read; empty: all were."""
    last_log_lines: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    """(namespace, pod, container) -> the last log line of the container's previous run. Empty
    unless a second step of collecting filled it, with `dataclasses.replace`."""
    _derived: dict[Callable[[Snapshot], Any], Any] = field(default_factory=dict, init=False)

    def of(self, source: Source[T]) -> tuple[T, ...]:
        """What was read; nothing where there is a gap. Only for what the snapshot was taken of."""
        if source in self.gaps:
            return ()
        return cast("tuple[T, ...]", self.listed[source])

    def knows(self, *sources: Source[Any]) -> bool:
        """Whether all of these could be read."""
        return not any(source in self.gaps for source in sources)

    def missing(self, sources: Iterable[Source[Any]]) -> tuple[Gap, ...]:
        found = (self.gaps[source] for source in sources if source in self.gaps)
        return tuple(dict.fromkeys(found))

    def derived(self, from_snapshot: Callable[[Snapshot], T]) -> T:
        """What a pure function makes of this snapshot, worked out once."""
        if from_snapshot not in self._derived:
            self._derived[from_snapshot] = from_snapshot(self)
        return cast("T", self._derived[from_snapshot])


async def take(
    api: Api,
    sources: Iterable[Source[Any]],
    progress: Progress | None = None,
    *,
    namespace: str = "",
) -> Snapshot:
    """Read every one of `sources` once, in parallel."""
    snapshot = Snapshot(datetime.now(UTC).replace(microsecond=0), namespace=namespace)
    room = asyncio.Semaphore(_TOGETHER)

    async def read(source: Source[Any]) -> None:
        async with room:
            try:
                snapshot.listed[source] = await source.read(api, namespace, progress)
            except ApiError as error:
                snapshot.gaps[source] = _gap(source, error)

    with one_failure():
        async with asyncio.TaskGroup() as tasks:
            for source in dict.fromkeys(sources):
                tasks.create_task(read(source))
    return snapshot


def _gap(source: Source[Any], error: ApiError) -> Gap:
    if isinstance(error, Forbidden):
        cause = Cause.DENIED
    elif isinstance(error, NotFound):
        cause = Cause.ABSENT
    elif isinstance(error, ServiceUnavailable):
        cause = Cause.UNAVAILABLE
    else:
        raise error
    return Gap(source.verb, source.name, cause, error.message)
