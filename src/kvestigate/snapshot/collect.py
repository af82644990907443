"""Taking a snapshot: each source is read once, a few at a time.

A source that is forbidden, not served or unavailable becomes a `Gap`, and the others are read all
the same. A part of a source that is not read is a `Gap` beside what was read of it. A server that
does not answer or rejects the credentials is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kvestigate.aio.groups import one_failure
from kvestigate.client.api import Api
from kvestigate.errors import ApiError, NotFound
from kvestigate.snapshot.gaps import Cause, Gap, cause_of
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.source import Progress, Source

# Each source may itself have several requests in flight.
_TOGETHER = 4


async def take(
    api: Api,
    sources: Iterable[Source[Any]],
    progress: Progress | None = None,
    *,
    namespace: str = "",
) -> Snapshot:
    """Read each of `sources` once, a few at a time."""
    snapshot = Snapshot(datetime.now(UTC).replace(microsecond=0), namespace=namespace)
    room = asyncio.Semaphore(_TOGETHER)

    async def read(source: Source[Any]) -> None:
        async with room:
            try:
                reading = await source.read(api, namespace, progress)
                snapshot.listed[source] = reading.items
                if reading.gaps:
                    snapshot.parts[source] = reading.gaps
            except ApiError as error:
                if isinstance(error, NotFound) and source.absent_means_none:
                    snapshot.listed[source] = ()
                else:
                    snapshot.gaps[source] = _gap(source, error)

    with one_failure():
        async with asyncio.TaskGroup() as tasks:
            for source in dict.fromkeys(sources):
                tasks.create_task(read(source))
    return snapshot


def _gap(source: Source[Any], error: ApiError) -> Gap:
    cause = cause_of(error)
    if cause is Cause.FAILED:
        raise error
    return Gap(source.verb, source.name, cause, error.message)
