"""etcd's JSON gateway: ranges, transactions and watches, from whichever member answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from kvestigate.aio.backoff import Backoff
from kvestigate.cluster.plane.store.errors import StoreFailed
from kvestigate.errors import ConnectionFailed, DeadlineExceeded, UsageError
from kvestigate.http.message import Headers, Incoming, Request
from kvestigate.http.pool import HttpClient

PATIENCE = 5.0
"""Seconds for which a request is tried again before whoever waits for it is told."""

_ATTEMPT = 3.0
"""Seconds for one attempt: a member may have gone without a word."""

_TRANSIENT = (4, 8, 14)
"""gRPC codes: deadline exceeded, resource exhausted (too many requests), unavailable."""

_HEADERS = Headers(
    [
        ("content-type", "application/json"),
        ("user-agent", "kvestigate"),
        # A member that has lost its leader ends a watch rather than leaving it silent.
        ("grpc-metadata-hasleader", "true"),
    ]
)

Json = dict[str, Any]
T = TypeVar("T")


class KeyValue(Struct, gc=False):
    key: bytes
    value: bytes = b""
    mod_revision: int = 0


class Header(Struct, gc=False, frozen=True):
    revision: int = 0


class Ranged(Struct):
    header: Header = Header()
    kvs: list[KeyValue] = []
    more: bool = False
    count: int = 0


class _Part(Struct):
    response_range: Ranged | None = None


class Done(Struct):
    """What became of a transaction."""

    header: Header
    succeeded: bool = False
    responses: list[_Part] = []

    def ranges(self) -> list[Ranged]:
        """What its ranges found, in their order."""
        return [each.response_range for each in self.responses if each.response_range is not None]


class Event(Struct):
    kv: KeyValue
    type: str = "PUT"


class Seen(Struct):
    """One message of a watch."""

    header: Header = Header()
    events: list[Event] = []
    canceled: bool = False
    compact_revision: int = 0
    cancel_reason: str = ""


class _Message(Struct):
    result: Seen | None = None
    error: Json | None = None


class _Failure(Struct):
    code: int = 0
    message: str = ""


class Refusal(StoreFailed):
    """etcd understood the request and will not do it."""

    def __init__(self, message: str, code: int) -> None:
        hint = None
        if "too large" in message:
            hint = "start etcd with a larger --max-request-bytes"
        elif "NOSPACE" in message or "space exceeded" in message:
            hint = "etcd is full: compact and defragment it, then clear the alarm with etcdctl"
        super().__init__(f"etcd refuses: {message}", hint=hint)
        self.code = code


_failure = msgspec.json.Decoder(_Failure, strict=False)
_ranged = msgspec.json.Decoder(Ranged, strict=False)
_done = msgspec.json.Decoder(Done, strict=False)
_message = msgspec.json.Decoder(_Message, strict=False)
_anything = msgspec.json.Decoder(Any)


def prefix_end(prefix: bytes) -> bytes:
    """The first key after all that start with `prefix`, which must not end in 0xff."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


class EtcdClient:
    """Asks the members in turn. Whatever is sent may arrive twice, and must bear that."""

    def __init__(
        self,
        endpoints: Sequence[str],
        tls: ssl.SSLContext | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        self._members = [_connect(each, tls) for each in endpoints]
        self._names = ", ".join(endpoints)
        self._turn = 0

    async def range(self, key: bytes, end: bytes = b"", **options: Any) -> Ranged:
        """`options` are those of RangeRequest: revision, limit, count_only ..."""
        body = {"key": key, **({"range_end": end} if end else {}), **options}
        return await self._call("/v3/kv/range", body, _ranged)

    async def txn(
        self, compare: Sequence[Json], success: Sequence[Json], failure: Sequence[Json] = ()
    ) -> Done:
        body = {"compare": compare, "success": success, "failure": failure}
        return await self._call("/v3/kv/txn", body, _done)

    async def compact(self, revision: int) -> None:
        await self._call("/v3/kv/compaction", {"revision": revision}, _anything)

    async def watch(
        self, key: bytes, end: bytes, start: int, silence: float
    ) -> AsyncGenerator[Seen, None]:
        """Messages from revision `start` on; the first one says that the watch stands.

        Raises StoreFailed when it breaks, or when nothing came for `silence` seconds.
        """
        body = {"create_request": {"key": key, "range_end": end, "start_revision": start}}
        try:
            incoming = await self._send("/v3/watch", body, silence)
            try:
                async for line in _lines(incoming):
                    message = _message.decode(line)
                    if message.result is None:
                        raise self._away(f"the watch ended: {message.error}")
                    yield message.result
            finally:
                await incoming.aclose()
        except (ConnectionFailed, DeadlineExceeded) as error:
            self._turn += 1
            raise self._away(error.message) from error

    async def aclose(self) -> None:
        for member in self._members:
            await member.aclose()

    async def _call(self, path: str, message: Json, decoder: msgspec.json.Decoder[T]) -> T:
        backoff = Backoff(initial=0.05, cap=1.0)
        problem = "no answer"
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    try:
                        incoming = await self._send(path, message, _ATTEMPT)
                        body = await incoming.read()
                    except (ConnectionFailed, DeadlineExceeded) as error:
                        problem = error.message
                    else:
                        if incoming.status == 200:
                            return decoder.decode(body)
                        problem = _judge(incoming.status, body)
                    self._turn += 1
                    await asyncio.sleep(backoff.next())
        except TimeoutError:
            raise self._away(problem) from None

    async def _send(self, path: str, body: Json, silence: float) -> Incoming:
        member = self._members[self._turn % len(self._members)]
        request = Request("POST", path, headers=_HEADERS, body=msgspec.json.encode(body))
        return await member.send(request, timeout=_ATTEMPT, read_timeout=silence)

    def _away(self, why: str) -> StoreFailed:
        hint = f"see that it runs and has a leader: {self._names}"
        if "desc = " in why and "bad certificate" in why:  # the gateway's words, not ours
            hint = "start etcd with a --client-cert-file that is good for clients, for its gateway"
        return StoreFailed(f"etcd does not answer: {why}", hint=hint)


def _judge(status: int, body: bytes) -> str:
    """What is wrong, if another attempt may help; else raises."""
    try:
        failure = _failure.decode(body)
    except msgspec.DecodeError:
        failure = _Failure(message=f"HTTP {status}")
    exhausted = "space exceeded" in failure.message
    if status >= 500 or (failure.code in _TRANSIENT and not exhausted):
        return failure.message
    raise Refusal(failure.message, failure.code)


async def _lines(incoming: Incoming) -> AsyncIterator[bytes]:
    if incoming.status != 200:
        raise ConnectionFailed(f"the watch was answered with status {incoming.status}")
    pieces: list[bytes] = []
    async for chunk in incoming:
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            yield b"".join([*pieces, line])
            pieces.clear()
        pieces.append(rest)
    raise ConnectionFailed("the watch ended")


def _connect(endpoint: str, tls: ssl.SSLContext | None) -> HttpClient:
    problem = UsageError(
        f"--etcd: {endpoint!r} is not the URL of an etcd", hint="write http://127.0.0.1:2379"
    )
    try:
        url = urlsplit(endpoint)
        port = url.port or 2379
    except ValueError:
        raise problem from None
    if url.scheme not in ("http", "https") or not url.hostname or url.path.strip("/"):
        raise problem
    return HttpClient(
        host=url.hostname,
        port=port,
        tls=tls if url.scheme == "https" else None,
        connect_timeout=_ATTEMPT,
    )
