"""The stream as plain iterators, for programs without an event loop of their own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.collect.access import access_for
from kvestigate.collect.checkpoint import Checkpoint, Mark
from kvestigate.collect.kinds import DEFAULT, chosen
from kvestigate.collect.model import InferenceRequest
from kvestigate.collect.seen import SeenCache
from kvestigate.collect.watching import Follower, Following, sources_of

logger = logging.getLogger(__name__)

_AHEAD = 1_000
"""Requests made before the caller asks for them."""

_Lines = asyncio.Queue[bytes]


def list_and_emit_initial(
    kinds: Sequence[str] = DEFAULT,
    namespaces: Sequence[str] | None = None,
    kubeconfig: str | None = None,
    ca_file: str | None = None,
    verify_ssl: bool | None = None,
    seen_cache: SeenCache | None = None,
) -> Iterator[InferenceRequest]:
    """What is there now. A stream that is given the same cache goes on exactly here."""
    cache = SeenCache() if seen_cache is None else seen_cache
    access = access_for(kubeconfig, ca_file, verify_ssl)

    async def snapshot(lines: _Lines) -> None:
        following = Following(emit_initial=True)
        async with _followers(access, kinds, namespaces, cache, lines, following) as followers:
            for follower in followers:
                await follower.list()
                cache.positions[_place(follower)] = follower.position

    return _iterated(snapshot)


def stream_inference_requests(
    kinds: Sequence[str] = DEFAULT,
    namespaces: Sequence[str] | None = None,
    kubeconfig: str | None = None,
    ca_file: str | None = None,
    verify_ssl: bool | None = None,
    seen_cache: SeenCache | None = None,
) -> Iterator[InferenceRequest]:
    """What is added or modified from now on, or since the snapshot with the same cache.

    It never ends by itself: leave the loop, or close the iterator.
    """
    cache = SeenCache() if seen_cache is None else seen_cache
    access = access_for(kubeconfig, ca_file, verify_ssl)

    async def follow(lines: _Lines) -> None:
        following = Following()
        async with (
            _followers(access, kinds, namespaces, cache, lines, following) as followers,
            asyncio.TaskGroup() as tasks,
        ):
            for follower in followers:
                if position := cache.positions.get(_place(follower)):
                    follower.checkpoint.settle([Mark(follower.source.name, position)])
                tasks.create_task(follower.run())

    return _iterated(follow)


def _place(follower: Follower) -> tuple[str, str]:
    return follower.source.kind.name, follower.source.namespace


@asynccontextmanager
async def _followers(
    access: Access,
    kinds: Sequence[str],
    namespaces: Sequence[str] | None,
    cache: SeenCache,
    lines: _Lines,
    following: Following,
) -> AsyncIterator[list[Follower]]:
    with closing(Checkpoint()) as checkpoint:

        async def emit(line: bytes | None, mark: Mark) -> None:
            if line is not None:
                await lines.put(line)
            checkpoint.settle([mark])

        async with connect(access) as api:
            sources = await sources_of(api, chosen(kinds), namespaces or ())
            yield [
                Follower(api, source, checkpoint, emit, logger.warning, following, cache)
                for source in sources
            ]


def _iterated(produce: Callable[[_Lines], Awaitable[None]]) -> Iterator[InferenceRequest]:
    """What `produce` puts into a queue, on an event loop that runs while the caller waits."""
    with asyncio.Runner() as runner:
        lines: _Lines = asyncio.Queue(_AHEAD)

        async def run() -> None:
            await produce(lines)

        producer = runner.get_loop().create_task(run())
        while (line := runner.run(_next(lines, producer))) is not None:
            yield InferenceRequest.model_validate_json(line)


async def _next(lines: _Lines, producer: asyncio.Task[None]) -> bytes | None:
    """The next line; None when there will be no more, or why there will not."""
    if lines.empty():
        getting = asyncio.ensure_future(lines.get())
        await asyncio.wait({getting, producer}, return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            return getting.result()
        getting.cancel()
        try:
            await producer
        except ExceptionGroup as group:  # of the tasks: the caller knows nothing of those
            raise _first(group) from None
        return None
    return lines.get_nowait()


def _first(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, ExceptionGroup) else first
