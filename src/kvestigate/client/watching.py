"""Watches that outlive their connections.

A watch goes on where it stopped: after the server ends it, after the connection breaks, and
after it went silent. Only a version that the server has forgotten ends it, with `Expired`:
then the state has to be listed anew.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import msgspec

from kvestigate import errors
from kvestigate.aio.backoff import Backoff
from kvestigate.client.cache import ChangeType
from kvestigate.client.call import Call, failure, parameters
from kvestigate.client.exchange import Exchange, pieces
from kvestigate.client.lines import Lines
from kvestigate.kube.decode import decode

T = TypeVar("T")

SILENCE = 90.0
"""Seconds without a byte after which a connection counts as dead.

Servers that know bookmarks send one about every minute; where they do not, asking again from
the last version costs little.
"""

_LONGEST = 300.0
"""Seconds that a server is asked to keep one watch, and up to twice that: spread, so that the
watches of many clients do not all end in the same moment."""

_SHORT = 1.0
"""A watch that ended sooner, without an event, is a server in trouble: pause before the next."""


class Event(msgspec.Struct, Generic[T], frozen=True):
    """One change of one object."""

    type: ChangeType
    object: T
    """The object after the change; the last known state when it was deleted."""


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_VERSIONED = msgspec.json.Decoder(_Versioned)

_TYPE = b'{"type":"'
_OBJECT = b'","object":'
_LONGEST_TYPE = len(_TYPE) + len(b"MODIFIED")


def opened(line: bytes) -> tuple[str, bytes]:
    """The type and the object of one line of a watch.

    Every server writes the two in this order and without spaces: then the object is cut out
    unread. Any other JSON is parsed.
    """
    end = line.find(_OBJECT, len(_TYPE), _LONGEST_TYPE + len(_OBJECT))
    if end >= 0 and line.startswith(_TYPE) and line.endswith(b"}"):
        return line[len(_TYPE) : end].decode(), line[end + len(_OBJECT) : -1]
    envelope = _ENVELOPE.decode(line)
    return envelope.type, bytes(envelope.object)


class Watch(Generic[T]):
    """An async context manager that iterates over the events.

    `resource_version` is the version up to which everything has been seen, bookmarks included.
    """

    def __init__(
        self,
        exchange: Exchange,
        call: Call,
        type: type[T],
        *,
        resource_version: str = "",
        unreadable: Callable[[errors.InputError], None] | None = None,
        silence: float = SILENCE,
        longest: float = _LONGEST,
    ) -> None:
        """`unreadable` is told of objects that are not of the type; without it they are raised."""
        self.resource_version = resource_version
        self._exchange = exchange
        self._clock = exchange.policy.clock
        self._call = call
        self._type = type
        self._unreadable = unreadable
        self._where = call.resource.qualified
        self._silence = silence
        self._longest = longest
        self._heard = False
        self._events = self._follow()

    async def __aenter__(self) -> Watch[T]:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[Event[T]]:
        return self._events

    async def aclose(self) -> None:
        await self._events.aclose()

    async def _follow(self) -> AsyncGenerator[Event[T], None]:
        """Connection after connection. What fails the very first one is the caller's."""
        backoff = Backoff(initial=0.8, cap=30.0, jitter=1.0)
        connected = False
        while True:
            self._heard = False
            started = self._clock.now()
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
                        yield event
            except errors.KvestigateError as error:
                if not transient(error) or not (connected or self._heard):
                    raise
                pause = True
            else:
                pause = not self._heard and self._clock.now() - started < _SHORT
            connected = True
            if self._heard:
                backoff.reset()
            if pause:
                await self._clock.sleep(backoff.next())

    async def _connection(self) -> AsyncGenerator[Event[T], None]:
        request = self._call.request(
            *parameters(
                watch=True,
                allowWatchBookmarks=True,
                resourceVersion=self.resource_version,
                timeoutSeconds=int(self._longest * (1 + random.random())),
            )
        )
        async with self._exchange.stream(self._call, request) as incoming:
            lines = Lines()
            body = pieces(incoming, silence=self._silence, http_request=request)
            async with aclosing(body):
                while (piece := await _next(body)) is not None:
                    for line in lines.feed(piece):
                        if line and (event := self._event(line)) is not None:
                            yield event

    def _event(self, line: bytes) -> Event[T] | None:
        try:
            change, data = opened(line)
            if change == "ERROR":
                raise failure(self._call, 500, data)
            self._heard = True
            if change == "BOOKMARK":
                self.resource_version = _VERSIONED.decode(data).metadata.resource_version
                return None
            changed = self._object(data)
            self.resource_version = _version(changed, data)
        except msgspec.DecodeError as error:
            # What a proxy says when it gives up on the server behind it.
            raise errors.InternalError(f"{line[:100]!r} is not an event of {self._call}") from error
        except errors.InputError as error:
            if self._unreadable is None:
                raise
            self.resource_version = _VERSIONED.decode(data).metadata.resource_version
            self._unreadable(error)
            return None
        return Event(cast(ChangeType, change), changed)

    def _object(self, data: bytes) -> T:
        if self._type is bytes:
            return cast(T, data)
        return decode(data, self._type, where=self._where)


async def _next(body: AsyncIterator[bytes]) -> bytes | None:
    """The next piece; None at the end of the body, or after too long a silence."""
    try:
        return await anext(body, None)
    except errors.DeadlineExceeded:
        return None


def _version(object: Any, data: bytes) -> str:
    """The object's version, from the decoded object if it has the field."""
    if isinstance(object, dict):
        version = (object.get("metadata") or {}).get("resourceVersion")
    else:
        metadata = getattr(object, "metadata", None)
        version = getattr(metadata, "resource_version", None)
    return version or _VERSIONED.decode(data).metadata.resource_version


def transient(error: errors.KvestigateError) -> bool:
    """Whether the failure says nothing about the request: the same one may work in a moment."""
    if isinstance(error, errors.ApiError):
        return error.http_code >= 500 or isinstance(error, errors.TooManyRequests)
    return isinstance(error, (errors.ConnectionFailed, errors.DeadlineExceeded))
