"""The values that cross the wire, and the seam between a server and whatever answers it.

A `Handler` takes a `Request` and returns a `Response` or an `Upgrade`. The HTTP front calls
it for bytes from a socket; the client's in-process transport calls the very same function
without one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct, field


class Headers:
    """Ordered, case-insensitive, repeatable header fields."""

    __slots__ = ("_fields", "_first", "_names")

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._take([(name.lower(), value) for name, value in fields])

    def _take(self, fields: list[tuple[str, str]]) -> None:
        self._fields = fields
        self._first = dict(reversed(fields))
        """The first value of each name."""
        self._names = ""

    @classmethod
    def parsed(cls, fields: list[tuple[str, str]]) -> Headers:
        """From fields whose names are lower-case already; takes the list over."""
        headers = cls.__new__(cls)
        headers._take(fields)
        return headers

    def get(self, name: str, default: str = "") -> str:
        """The first value of `name`, which must be lower-case."""
        return self._first.get(name, default)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self._fields if key == name]

    def with_value(self, name: str, value: str) -> Headers:
        """The same but for the first field of that name: it is there, and lower-case."""
        headers = self.__class__.__new__(self.__class__)
        fields = headers._fields = self._fields.copy()
        first = headers._first = self._first.copy()
        fields[fields.index((name, first[name]))] = (name, value)
        first[name] = value
        headers._names = self._names
        return headers

    def add(self, name: str, value: str) -> None:
        name = name.lower()
        self._fields.append((name, value))
        self._first.setdefault(name, value)
        self._names = ""

    @property
    def names(self) -> str:
        """All names, a line each: for a quick look that finds nothing."""
        if not self._names:
            self._names = "\n".join(self._first)
        return self._names

    def __contains__(self, name: str) -> bool:
        return name in self._first

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._fields)

    def __repr__(self) -> str:
        return f"Headers({self._fields!r})"


class Peer(Struct, frozen=True):
    """Who is at the other end of the connection."""

    address: str = ""
    """`127.0.0.1:53122`, or empty in process."""
    certificate: bytes | None = None
    """The verified client certificate, DER."""


class Sink(Protocol):
    """Takes the body of a request as it comes, so that nobody has to hold it whole."""

    def write(self, piece: bytes) -> None:
        """OSError if there is no room for it."""

    def close(self) -> None:
        """Let go of it. Called if the request never becomes whole, else up to the handler."""


class Request(Struct):
    method: str
    path: str
    """As sent: percent-encoded, without the query."""
    query: str = ""
    """The raw query string, without `?`."""
    headers: Headers = field(default_factory=Headers)
    body: bytes = b""
    peer: Peer = field(default_factory=Peer)
    sink: Sink | None = None
    """What has the body, if not `body`."""


class Response(Struct):
    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes | Sequence[bytes] | AsyncIterator[bytes] = b""
    """Bytes, pieces to be sent in order, or a stream (chunked; closed when the client goes)."""
    compress: bool = True
    """Whether a large body may be gzipped for a client that accepts it; streams never are."""


class Incoming(Protocol):
    """A response whose head has come and whose body is still to be read."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    async def read(self, limit: int | None = None) -> bytes:
        """The whole body, decoded; one longer than `limit` bytes is an error."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The decoded body, as it arrives."""

    async def aclose(self) -> None:
        """Give up what has not been read. Needed unless the body was read to its end."""


class WebSocket(Protocol):
    """One message-oriented duplex connection, the same on both sides."""

    @property
    def subprotocol(self) -> str | None: ...

    async def send(self, message: bytes | str) -> None: ...

    async def receive(self) -> bytes | str | None:
        """The next message, or None once the peer has closed."""

    async def close(self, code: int = 1000, reason: str = "") -> None: ...


class Upgrade(Struct):
    """Accept a WebSocket with one of the client's subprotocols and hand it to `run`."""

    run: Callable[[WebSocket], Awaitable[None]]
    """Learns from `receive` that the peer has gone; the WebSocket is closed when it returns."""
    subprotocol: str | None = None


Handler = Callable[[Request], Awaitable[Response | Upgrade]]
