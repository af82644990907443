"""Taking a snapshot: each source is read once, a few at a time.

A source that is forbidden, not served or unavailable becomes a `Gap`, and the others are read all
the same. A server that does not answer or rejects the credentials is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kvestigate.aio.groups import one_failure
from kvestigate.client.api import Api
from kvestigate.errors import ApiError, Forbidden, NotFound, ServiceUnavailable
from kvestigate.snapshot.model import Cause, Gap, Snapshot
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
                snapshot.listed[source] = await source.read(api, namespace, progress)
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
    if isinstance(error, Forbidden):
        cause = Cause.DENIED
    elif isinstance(error, NotFound):
        cause = Cause.ABSENT
    elif isinstance(error, ServiceUnavailable):
        cause = Cause.UNAVAILABLE
    else:
        raise error
    return Gap(source.verb, source.name, cause, error.message)
