"""Lists in pages that stream: bounded memory, and the next page asked for early.

The server writes `metadata.continue` before `items`. So as soon as the first bytes of a page
have come, the next page is asked for on another connection, and the server prepares it while
this one is still on its way. A server that writes `metadata` last, or ignores `limit`, is
served as well, without the head start.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from typing import TypeVar

import msgspec

from kvestigate import errors
from kvestigate.client.call import CONTINUE, Call, parameters
from kvestigate.client.exchange import Exchange, pieces
from kvestigate.kube.decode import ListMeta, ListPage, decode, decode_page

T = TypeVar("T")

PAGE_SIZE = 500

# One page is being read, two are on their way, one is prepared by the server. More would only
# hold more memory.
_IN_FLIGHT = 4

# The head of a list is a few hundred bytes; a continue token of a custom store may be longer.
_LONGEST_HEAD = 16 * 1024


class _Head(msgspec.Struct):
    metadata: ListMeta = ListMeta()


_HEAD = msgspec.json.Decoder(_Head)
_ITEMS = b'"items"'


def early_token(start: bytes) -> str | None:
    """The continue token in the first bytes of a list: empty on the last page.

    None when these bytes do not tell, because `metadata` is not complete before `items`.
    """
    end = start.find(_ITEMS)
    if end < 0 or b'"metadata"' not in start[:end]:
        return None
    # What precedes `items` is itself an object once its last comma is a closing brace.
    try:
        return _HEAD.decode(start[:end].rstrip().rstrip(b",") + b"}").metadata.continue_
    except msgspec.DecodeError:
        return None


async def pages(
    exchange: Exchange,
    call: Call,
    type: type[T],
    *,
    limit: int = PAGE_SIZE,
    consistent: bool = False,
) -> AsyncGenerator[ListPage[T], None]:
    """The pages of a list in order; at most a few are held at any time.

    When the server forgets the state that the list began with (a list that takes longer than
    the compaction interval, 5 minutes by default), the rest comes from a newer state, or with
    `consistent`, `Expired` is raised.
    """
    chain = _Chain(exchange, call, limit, consistent)
    try:
        # Nothing is kept past its use: a page and its bytes are the memory that a list takes.
        while (body := await chain.next()) is not None:
            with _collector_paused():
                page = decode_page(body, type, where=call.resource.qualified)
            del body
            yield page
            del page
    finally:
        await chain.aclose()


async def whole(
    exchange: Exchange, call: Call, type: type[T], *, limit: int = PAGE_SIZE
) -> ListPage[T]:
    """All items, of one moment: when that moment expires halfway, all at once in one answer."""
    items: list[T] = []
    metadata = ListMeta()
    started = False
    try:
        async with aclosing(pages(exchange, call, type, limit=limit, consistent=True)) as stream:
            async for page in stream:
                started = True
                items += page.items
                metadata = page.metadata
    except (errors.Expired, errors.Gone):
        if not started:
            raise
        return await whole(exchange, call, type, limit=0)
    return ListPage(metadata=metadata, items=tuple(items))


class _Chain:
    """Asks for page after page, a few ahead of the reader."""

    def __init__(self, exchange: Exchange, call: Call, limit: int, consistent: bool) -> None:
        self._exchange = exchange
        self._call = call
        self._limit = parameters(limit=limit or None)
        self._consistent = consistent
        self._room = asyncio.Semaphore(_IN_FLIGHT)
        self._queue: asyncio.Queue[asyncio.Task[bytes] | None] = asyncio.Queue()
        self._fetching: set[asyncio.Task[bytes]] = set()
        self._walk = asyncio.ensure_future(self._walk_tokens())

    async def next(self) -> bytes | None:
        """The body of the next page, or None after the last."""
        fetch = await self._queue.get()
        if fetch is None:
            return None
        body = await fetch
        self._room.release()
        return body

    async def aclose(self) -> None:
        tasks = [self._walk, *self._fetching]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _walk_tokens(self) -> None:
        token = ""
        while True:
            await self._room.acquire()
            following: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            fetch = asyncio.ensure_future(self._fetch(token, following))
            self._fetching.add(fetch)
            fetch.add_done_callback(self._fetching.discard)
            self._queue.put_nowait(fetch)
            token = await following
            if not token:
                self._queue.put_nowait(None)
                return

    async def _fetch(self, token: str, following: asyncio.Future[str]) -> bytes:
        try:
            return await self._read(token, following)
        except (errors.Expired, errors.Gone) as expired:
            newer = expired.details.get(CONTINUE)
            if self._consistent or not newer:
                raise
            return await self._read(newer, following)
        finally:
            _tell(following, "")  # the reader of the body meets the failure; the walk just ends

    async def _read(self, token: str, following: asyncio.Future[str]) -> bytes:
        call = self._call
        if token:  # the token holds the version; naming another one beside it is an error
            kept = (pair for pair in call.query if not pair[0].startswith("resourceVersion"))
            call = msgspec.structs.replace(call, query=(*kept, ("continue", token)))
        request = call.request(*self._limit)

        async def attempt() -> bytes:
            incoming = await self._exchange.once(call, request)
            try:
                stream = pieces(incoming, silence=self._exchange.timeout, http_request=request)
                return await _collect(stream, following)
            finally:
                await incoming.aclose()

        return await self._exchange.policy.run(request, attempt, deadline=None)


async def _collect(stream: AsyncIterator[bytes], following: asyncio.Future[str]) -> bytes:
    """The whole body; `following` learns the next token on the way, or at the end."""
    pieces: list[bytes] = []
    start = b""
    looking = True
    async for piece in stream:
        pieces.append(piece)
        if looking:
            start += piece[:_LONGEST_HEAD]
            if (token := early_token(start)) is not None:
                _tell(following, token)
            looking = _ITEMS not in start and len(start) < _LONGEST_HEAD
    body = b"".join(pieces)
    if not following.done():
        _tell(following, decode(body, _Head).metadata.continue_)
    return body


def _tell(following: asyncio.Future[str], token: str) -> None:
    if not following.done():
        following.set_result(token)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic collection while many objects are made at once: it would find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
