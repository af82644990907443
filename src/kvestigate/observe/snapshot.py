"""One cluster at one moment: what was listed, and what could not be.

`take` lists each collection once, a few at a time. A refusal is recorded as a `Gap` and the
rest goes on; that nobody answers, or that we are not known at all, is a failure.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import ApiError, Forbidden, KvestigateError, NotFound, ServiceUnavailable
from kvestigate.observe.listings import Listing

T = TypeVar("T")

# Each list has a few requests of its own under way already.
_TOGETHER = 4

# Fewer answers, and still only a few megabytes each.
_PAGE_SIZE = 1000


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
    """`pods`, `nodes.metrics.k8s.io`"""
    cause: Cause
    message: str
    """What the server said."""


Progress = Callable[[str, int], None]
"""Called with a resource and how many of it have been read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    captured_at: datetime
    """UTC."""
    listed: dict[Listing[Any], tuple[Any, ...]] = field(default_factory=dict)
    gaps: dict[Listing[Any], Gap] = field(default_factory=dict)

    def of(self, listing: Listing[T]) -> tuple[T, ...]:
        """The objects; none where there is a gap. Only for what the snapshot was taken of."""
        if listing in self.gaps:
            return ()
        return cast("tuple[T, ...]", self.listed[listing])

    def knows(self, *listings: Listing[Any]) -> bool:
        """Whether all of these could be listed."""
        return not any(listing in self.gaps for listing in listings)

    def missing(self, listings: Iterable[Listing[Any]]) -> tuple[Gap, ...]:
        return tuple(self.gaps[listing] for listing in listings if listing in self.gaps)


async def take(
    api: Api, listings: Iterable[Listing[Any]], progress: Progress | None = None
) -> Snapshot:
    """List every one of `listings` once, in parallel."""
    snapshot = Snapshot(datetime.now(UTC).replace(microsecond=0))
    room = asyncio.Semaphore(_TOGETHER)

    async def read(listing: Listing[Any]) -> None:
        async with room:
            try:
                snapshot.listed[listing] = await _all(api, listing, progress)
            except ApiError as error:
                snapshot.gaps[listing] = _gap(listing, error)

    try:
        async with asyncio.TaskGroup() as tasks:
            for listing in dict.fromkeys(listings):
                tasks.create_task(read(listing))
    except* KvestigateError as failures:
        raise failures.exceptions[0] from None
    return snapshot


async def _all(api: Api, listing: Listing[T], progress: Progress | None) -> tuple[T, ...]:
    selection = Selection(fields=listing.fields)
    items: list[T] = []
    pages = api.pages(listing.resource, selection, type=listing.type, limit=_PAGE_SIZE)
    try:
        async for page in pages:
            items += page.items
            if progress is not None:
                progress(listing.resource.qualified, len(items))
    finally:
        await pages.aclose()
    return tuple(items)


def _gap(listing: Listing[Any], error: ApiError) -> Gap:
    if isinstance(error, Forbidden):
        cause = Cause.DENIED
    elif isinstance(error, NotFound):
        cause = Cause.ABSENT
    elif isinstance(error, ServiceUnavailable):
        cause = Cause.UNAVAILABLE
    else:
        raise error
    return Gap("list", listing.resource.qualified, cause, error.message)
