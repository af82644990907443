"""The load generator, in a process of its own: `python -m bench.load`.

It reads a job as a line of JSON, opens its connections, says `ready`, starts at the next line
and ends with the outcome as a line of JSON. Between the two lines nothing but the load happens,
so whoever waits for them can read the clocks of the server.
"""

from __future__ import annotations

import asyncio
import math
import re
import ssl
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar, cast

import httptools
import msgspec

from kvestigate.aio.loops import fast_loop

OBJECT = b"@OBJECT@"
"""Stands for the number of an object in a path or body; as long as the digits put there."""
COUNT = b"@COUNT@@"
"""Stands for the number of the request."""
_DIGITS = b"%08d"


class Job(msgspec.Struct, frozen=True):
    port: int
    ca: str
    token: str
    method: str
    path: str
    body: str = ""
    content_type: str = "application/json"
    connections: int = 64
    seconds: float = 0.0
    """How long to ask; 0: until `requests` were asked."""
    requests: int = -1
    objects: int = 0
    """Take turns among so many; 0: each request has an object of its own."""
    first: int = 0
    """The number of the first request."""
    watch: str = ""
    """What to watch meanwhile, with so many `watchers`: a path that ends before the `version`."""
    version: str = ""
    watchers: int = 0


class Outcome(msgspec.Struct, frozen=True):
    requests: int
    seconds: float
    """From the start to the last answer, or to the last event of the last watcher."""
    median_ms: float
    p99_ms: float
    events: int
    """What all watchers were told."""


class Failed(Exception):
    """The server refused a request."""


class _Peer(asyncio.Protocol):
    """Speaks HTTP; refuses every answer that is no success."""

    def __init__(self, done: asyncio.Future[None]) -> None:
        self._done = done
        self._parser = httptools.HttpResponseParser(self)
        self._refused = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, failure: Exception | None) -> None:
        self._fail(f"the connection was lost: {failure}")

    def on_body(self, piece: bytes) -> None:
        if self._parser.get_status_code() >= 300:
            self._refused += piece

    def on_message_complete(self) -> None:
        if (status := self._parser.get_status_code()) >= 300:
            self._fail(f"{status}: {self._refused[:1000].decode(errors='replace')}")
        else:
            self.completed()

    def completed(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._transport.abort()

    def _fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(Failed(why))


class _Supply:
    """The requests that all connections draw from, and when each was answered."""

    def __init__(self, job: Job, done: asyncio.Future[None]) -> None:
        self._job = job
        self._done = done
        self._template = _request(job, job.method, job.path, job.body)
        self._asked = 0
        self.taken: list[float] = []
        self.deadline = math.inf

    def next(self) -> bytes | None:
        job = self._job
        if self._asked == job.requests or time.perf_counter() >= self.deadline:
            return None
        number = job.first + self._asked
        self._asked += 1
        at = number % job.objects if job.objects else number
        request = self._template.replace(OBJECT, _DIGITS % at)
        return request.replace(COUNT, _DIGITS % number)

    def answered(self, seconds: float) -> None:
        self.taken.append(seconds)

    def exhausted(self) -> None:
        if len(self.taken) == self._asked and not self._done.done():
            self._done.set_result(None)


class _Caller(_Peer):
    """Asks one request after the other."""

    def __init__(self, done: asyncio.Future[None], supply: _Supply) -> None:
        super().__init__(done)
        self._supply = supply

    def ask(self) -> None:
        request = self._supply.next()
        if request is None:
            self._supply.exhausted()
        else:
            self._asked = time.perf_counter()
            self._transport.write(request)

    def completed(self) -> None:
        self._supply.answered(time.perf_counter() - self._asked)
        self._parser = httptools.HttpResponseParser(self)
        self.ask()


class _Watcher(asyncio.BufferedProtocol):
    """Counts events; goes on where it was if the server ends the watch.

    All watchers read into one buffer, and nothing is taken out of it: a hundred of them at a
    hundred thousand events a second must leave the machine to the servers.
    """

    def __init__(self, done: asyncio.Future[None], job: Job, buffer: bytearray) -> None:
        loop = asyncio.get_running_loop()
        self._done = done
        self._job = job
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._head = b""
        """Of the answer, until all of it has come."""
        self._streaming = False
        self._version = job.version
        self.events = 0
        self._recent = b""
        """The end of what has come: enough for the last event."""
        self.watching = loop.create_future()
        self.seen_all = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, failure: Exception | None) -> None:
        self._fail(f"the connection was lost: {failure}")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, size: int) -> None:
        start = 0 if self._streaming else self._read_head(size)
        if not self._streaming:
            return
        self.events += self._ends(start, size)
        end = self._view[max(start, size - _RECENT) : size].tobytes()
        self._recent = (self._recent + end)[-_RECENT:]
        if self.events == self._job.requests and not self.seen_all.done():
            self.seen_all.set_result(None)
        if self._recent.endswith(_LAST_CHUNK):
            self._resume()

    def _read_head(self, size: int) -> int:
        """Where in the buffer the stream begins."""
        before = len(self._head)
        self._head += self._view[:size].tobytes()
        end = self._head.find(_END_OF_HEAD)
        if end < 0:
            return size
        if not self._head.startswith(b"HTTP/1.1 200 "):
            self._fail(self._head.decode(errors="replace"))
            return size
        self._head = b""
        self._streaming = True
        if not self.watching.done():
            self.watching.set_result(None)
        return end + len(_END_OF_HEAD) - before

    def _ends(self, start: int, size: int) -> int:
        """How many events end here: their lines end with a brace, those of chunks do not."""
        buffer, found = self._buffer, 0
        at = buffer.find(b"\n", start, size)
        while at >= 0:
            before = buffer[at - 1 : at] if at > start else self._recent[-1:]
            found += before == b"}"
            at = buffer.find(b"\n", at + 1, size)
        return found

    def _resume(self) -> None:
        if b'{"type":"ERROR"' in self._recent:
            self._fail(f"a watch ended: {self._recent[-1000:].decode(errors='replace')}")
            return
        if versions := _VERSION.findall(self._recent):
            self._version = versions[-1].decode()
        self._recent, self._streaming = b"", False
        self.watch()

    def watch(self) -> None:
        self._transport.write(_request(self._job, "GET", self._job.watch + self._version, ""))

    def close(self) -> None:
        self._transport.abort()

    def _fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(Failed(why))


_BUFFER = 256 * 1024
_RECENT = 8 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


async def _run(job: Job) -> Outcome:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    supply = _Supply(job, done)
    callers = [_Caller(done, supply) for _ in range(job.connections)]
    buffer = bytearray(_BUFFER)
    watchers = [_Watcher(done, job, buffer) for _ in range(job.watchers)]
    with ExitStack() as connections:
        await _connect(job, [*callers, *watchers], connections)
        for watcher in watchers:
            watcher.watch()
            await _or_failure(watcher.watching, done)
        print("ready", flush=True)
        sys.stdin.readline()
        started = time.perf_counter()
        if job.seconds:
            supply.deadline = started + job.seconds
        for caller in callers:
            caller.ask()
        await done
        for watcher in watchers:
            await watcher.seen_all
        seconds = time.perf_counter() - started
    taken = sorted(supply.taken)
    return Outcome(
        requests=len(taken),
        seconds=seconds,
        median_ms=taken[len(taken) // 2] * 1000,
        p99_ms=taken[len(taken) * 99 // 100] * 1000,
        events=sum(watcher.events for watcher in watchers),
    )


async def _connect(job: Job, peers: Sequence[_Peer | _Watcher], connections: ExitStack) -> None:
    tls = ssl.create_default_context(cafile=job.ca)
    loop = asyncio.get_running_loop()
    for peer in peers:
        await loop.create_connection(partial(_same, peer), "127.0.0.1", job.port, ssl=tls)
        connections.callback(peer.close)


_P = TypeVar("_P", bound="_Peer | _Watcher")


def _same(peer: _P) -> _P:
    return peer


async def _or_failure(happened: asyncio.Future[None], done: asyncio.Future[None]) -> None:
    await asyncio.wait({happened, done}, return_when=asyncio.FIRST_COMPLETED)
    if done.done():
        done.result()


def _request(job: Job, method: str, path: str, body: str) -> bytes:
    fields = [
        f"{method} {path} HTTP/1.1",
        f"host: 127.0.0.1:{job.port}",
        f"authorization: Bearer {job.token}",
        "user-agent: bench",
        "accept: application/json",
    ]
    if body:
        fields += [f"content-type: {job.content_type}", f"content-length: {len(body.encode())}"]
    return "\r\n".join([*fields, "", body]).encode()


def main() -> None:
    job = msgspec.json.decode(sys.stdin.readline(), type=Job)
    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            outcome = runner.run(_run(job))
    except Failed as failed:
        sys.exit(f"{job.method} {job.path}: {failed}")
    print(msgspec.json.encode(outcome).decode(), flush=True)


if __name__ == "__main__":
    main()
