"""Lanes, sinks and the collector: who waits, who is dropped, and what the checkpoint says."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kvestigate.aio.clock import WallClock
from kvestigate.collect.checkpoint import Checkpoint, Known, Mark
from kvestigate.collect.collector import Collector
from kvestigate.collect.lanes import Lane
from kvestigate.collect.sinks.files import FileSink
from kvestigate.collect.sinks.interface import Rejected, Sink, Unavailable
from kvestigate.collect.sinks.post import PostSink
from kvestigate.errors import InputError
from kvestigate.http.message import Request, Response
from kvestigate.http.server import serve

PATIENCE = 20


@dataclass
class Scripted:
    """A sink that fails as told, then takes everything."""

    failures: list[Exception] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    taken: list[bytes] = field(default_factory=list)
    calls: int = 0
    name: str = "scripted"

    async def send(self, lines: Sequence[bytes]) -> None:
        await self.gate.wait()
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)
        self.taken += lines

    async def aclose(self) -> None:
        pass


class Instant(WallClock):
    """A clock whose pauses end when the test lets them."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.sleeping = asyncio.Event()
        self.go = asyncio.Event()

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.sleeping.set()
        await self.go.wait()


@asynccontextmanager
async def running(lane: Lane) -> AsyncIterator[None]:
    task = asyncio.ensure_future(lane.run())
    try:
        async with asyncio.timeout(PATIENCE):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def lane_to(sink: Sink, **more: int) -> tuple[Lane, Instant, list[str]]:
    clock, said = Instant(), list[str]()
    lane = Lane(
        sink,
        settled=lambda: None,
        warn=said.append,
        capacity=more.get("capacity", 4),
        batch=more.get("batch", 2),
        clock=clock,
    )
    return lane, clock, said


async def fill(lane: Lane, first: int, last: int) -> None:
    for number in range(first, last + 1):
        await lane.put(number, b"%d" % number)


async def test_a_slow_sink_makes_the_stream_wait() -> None:
    sink = Scripted()
    lane, _, _ = lane_to(sink)
    async with running(lane):
        await fill(lane, 1, 4)
        filling = asyncio.ensure_future(fill(lane, 5, 12))
        await asyncio.sleep(0)
        assert not filling.done()
        sink.gate.set()
        await filling
        await lane.empty.wait()
    assert sink.taken == [b"%d" % number for number in range(1, 13)]
    assert (lane.sent, lane.dropped, lane.delivered) == (12, 0, 12)


async def test_a_dead_sink_drops_the_oldest_and_counts_them() -> None:
    sink = Scripted([Unavailable("down"), Unavailable("down")])
    sink.gate.set()
    lane, clock, said = lane_to(sink)
    async with running(lane):
        await lane.put(1, b"1")
        await clock.sleeping.wait()
        await fill(lane, 2, 9)
        assert (len(lane), lane.dropped, lane.delivered) == (4, 5, 5)
        clock.go.set()
        await lane.empty.wait()
    assert sink.taken == [b"6", b"7", b"8", b"9"]
    assert clock.pauses[0] < clock.pauses[1]
    assert said == [
        "scripted: down; retrying until the sink works",
        "scripted: works again; 5 events were dropped so far",
    ]


async def test_what_is_refused_for_good_is_counted_and_passed_over() -> None:
    sink = Scripted([Rejected("the server answered 400")])
    sink.gate.set()
    lane, _, said = lane_to(sink, batch=1)
    async with running(lane):
        await fill(lane, 1, 2)
        await lane.empty.wait()
    assert (sink.taken, lane.rejected, lane.sent) == ([b"2"], 1, 1)
    assert said == ["scripted: 1 events were rejected: the server answered 400"]


async def test_marks_wait_for_the_slowest_sink() -> None:
    quick, slow = Scripted(), Scripted()
    quick.gate.set()
    with closing(Checkpoint()) as checkpoint:
        collector = Collector(checkpoint)
        lanes = [
            Lane(sink, settled=collector.settle, warn=lambda _: None) for sink in (quick, slow)
        ]
        collector.attach(lanes)
        async with running(lanes[0]), running(lanes[1]):
            await collector.emit(b"1", Mark("s", "5", "u", Known("5", "n", "a")))
            await collector.emit(None, Mark("s", "6"))
            await lanes[0].empty.wait()
            assert checkpoint.position("s") == ""
            slow.gate.set()
            assert await collector.drain(PATIENCE)
            assert checkpoint.position("s") == "6"
            assert list(checkpoint.known("s")) == ["u"]


async def test_a_file_keeps_whole_lines_only(tmp_path: Path) -> None:
    path = tmp_path / "out" / "events.ndjson"
    sink = FileSink(path)
    await sink.send([b"one", b"two"])
    await sink.aclose()
    with path.open("ab") as file:
        file.write(b"torn by a cra")
    sink = FileSink(path, fsync=True)
    await sink.send([b"three"])
    await sink.aclose()
    assert path.read_bytes() == b"one\ntwo\nthree\n"


async def test_a_file_of_nothing_but_a_torn_line_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_bytes(b"x" * 200_000)
    await FileSink(path).aclose()
    assert path.read_bytes() == b""


def test_a_file_rotates_by_size_and_keeps_five(tmp_path: Path) -> None:
    async def write() -> None:
        sink = FileSink(tmp_path / "events.ndjson", rotate_size=10)
        for number in range(8):
            await sink.send([b"line-%d" % number])
        await sink.aclose()

    asyncio.run(write())
    kept = {it.name: it.read_bytes() for it in tmp_path.iterdir()}
    assert kept == {
        "events.ndjson": b"line-7\n",
        **{f"events.ndjson.{number}": b"line-%d\n" % (7 - number) for number in range(1, 6)},
    }


async def test_a_file_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        FileSink(tmp_path / "file" / "events.ndjson")


@dataclass
class Receiver:
    """An endpoint that answers as told, then 200."""

    answers: list[int] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    async def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(self.answers.pop(0) if self.answers else 200, [], b"{}")


@asynccontextmanager
async def receiving(receiver: Receiver) -> AsyncIterator[str]:
    async with await serve(receiver) as server:
        yield f"http://127.0.0.1:{server.address[1]}/infer?from=test"


async def test_one_event_is_an_object_and_several_are_an_array() -> None:
    receiver = Receiver()
    async with receiving(receiver) as url:
        sink = PostSink(url, environ={}, token="secret")
        await sink.send([b'{"a":1}'])
        await sink.send([b'{"a":1}', b'{"a":2}'])
        await sink.aclose()
    assert [json.loads(it.body) for it in receiver.requests] == [{"a": 1}, [{"a": 1}, {"a": 2}]]
    request = receiver.requests[0]
    assert (request.method, request.path, request.query) == ("POST", "/infer", "from=test")
    assert request.headers.get("authorization") == "Bearer secret"
    assert request.headers.get("content-type") == "application/json"


async def test_bodies_are_compressed_if_asked() -> None:
    receiver = Receiver()
    async with receiving(receiver) as url:
        sink = PostSink(url, environ={}, compress=True)
        await sink.send([b'{"a":1}'])
        await sink.aclose()
    (request,) = receiver.requests
    assert request.headers.get("content-encoding") == "gzip"
    assert gzip.decompress(request.body) == b'{"a":1}'


@pytest.mark.parametrize(
    ("status", "error"),
    [(500, Unavailable), (503, Unavailable), (429, Unavailable), (400, Rejected), (302, Rejected)],
)
async def test_answers_that_are_no_success(status: int, error: type[Exception]) -> None:
    async with receiving(Receiver([status])) as url:
        sink = PostSink(url, environ={})
        with pytest.raises(error, match=f"the server answered {status}"):
            await sink.send([b"{}"])
        await sink.send([b"{}"])
        await sink.aclose()


async def test_nobody_there_is_unavailable() -> None:
    async with receiving(Receiver()) as url:
        pass
    sink = PostSink(url, environ={})
    with pytest.raises(Unavailable):
        await sink.send([b"{}"])
    await sink.aclose()


def test_a_url_that_is_none() -> None:
    with pytest.raises(InputError, match="--post: not a URL"):
        PostSink("ftp://host/path", environ={})
