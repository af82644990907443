"""SPDY/3.1: frames as bytes, and streams over a channel."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.errors import ConnectionFailed
from kvestigate.http import spdy
from kvestigate.http.spdy import (
    DICTIONARY,
    Data,
    Frame,
    Framer,
    GoAway,
    Ping,
    Reset,
    SynReply,
    SynStream,
)
from kvestigate.http.spdy_session import MAX_BUFFERED, SpdyStream, accept_streams

ids = st.integers(1, 2**31 - 1)
names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1).map(str.lower)
headers = st.dictionaries(names, st.text(st.characters(codec="utf-8")), max_size=8)
frames = st.one_of(
    st.builds(SynStream, ids, headers, st.booleans()),
    st.builds(SynReply, ids, headers, st.booleans()),
    st.builds(Data, ids, st.binary(max_size=500), st.booleans()),
    st.builds(Reset, ids, st.integers(1, 11)),
    st.builds(Ping, st.integers(0, 2**32 - 1)),
    st.builds(GoAway, ids, st.integers(0, 2)),
)


def test_the_dictionary_is_the_drafts() -> None:
    """Its checksum is in the head of every compressed block."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(st.lists(frames, max_size=12), st.integers(1, 40))
def test_frames_survive_the_wire_in_any_pieces(sent: list[Frame], size: int) -> None:
    writer, reader = Framer(), Framer()
    data = b"".join(writer.encode(frame) for frame in sent)

    received = [
        frame
        for start in range(0, len(data), size)
        for frame in reader.receive(data[start : start + size])
    ]

    assert received == sent


@pytest.mark.parametrize(
    ("frame", "data"),
    [
        (Ping(1), "80030006 00000004 00000001"),
        (Reset(3, spdy.CANCEL), "80030003 00000008 00000003 00000005"),
        (GoAway(5), "80030007 00000008 00000005 00000000"),
        (Data(1, b"hi", fin=True), "00000001 01000002 6869"),
    ],
)
def test_the_bytes_are_the_drafts(frame: Frame, data: str) -> None:
    assert Framer().encode(frame) == bytes.fromhex(data)
    assert list(Framer().receive(bytes.fromhex(data))) == [frame]


@pytest.mark.parametrize(
    "ignored", ["80030004 00000004 00000000", "80030009 00000008 00000001 00000fff"]
)
def test_settings_and_windows_are_read_over(ignored: str) -> None:
    ping = "80030006 00000004 00000001"

    assert list(Framer().receive(bytes.fromhex(ignored + ping))) == [Ping(1)]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("80020006 00000004 00000001", "version 2"),
        ("80030001 00ffffff", "control frame of 16777215 bytes"),
        ("80030006 00000001 00", "too short"),
        ("80030002 00000008 00000001 00000000", "cannot be decompressed"),
    ],
)
def test_nonsense_ends_the_connection(data: str, why: str) -> None:
    with pytest.raises(spdy.SpdyError, match=why):
        list(Framer().receive(bytes.fromhex(data)))


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_an_error(data: bytes) -> None:
    try:
        list(Framer().receive(data))
    except spdy.SpdyError:
        pass


def test_headers_that_grow_without_end_are_refused() -> None:
    data = Framer().encode(SynStream(1, {"bomb": "x" * 10 * spdy.MAX_CONTROL}))

    with pytest.raises(spdy.SpdyError, match="more than"):
        list(Framer().receive(data))


class Peer:
    """The opening side, and the channel between."""

    def __init__(self) -> None:
        self.framer = Framer()
        self.to_server: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.to_peer: asyncio.Queue[bytes] = asyncio.Queue()

    async def send(self, message: bytes | str) -> None:
        assert isinstance(message, bytes)
        self.to_peer.put_nowait(message)

    async def receive(self) -> bytes | str | None:
        return await self.to_server.get()

    def say(self, *sent: Frame) -> None:
        self.to_server.put_nowait(b"".join(self.framer.encode(frame) for frame in sent))

    def hang_up(self) -> None:
        self.to_server.put_nowait(None)

    async def hear(self) -> Frame:
        async with asyncio.timeout(10):
            [frame] = self.framer.receive(await self.to_peer.get())
        return frame


async def echo(stream: SpdyStream) -> None:
    while (data := await stream.read()) is not None:
        await stream.write(stream.headers.get("prefix", "").encode() + data)


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    made = Peer()
    serving = asyncio.create_task(accept_streams(made, echo))
    yield made
    made.hang_up()
    await asyncio.wait_for(serving, 10)


async def test_streams_are_accepted_and_kept_apart(peer: Peer) -> None:
    peer.say(SynStream(1, {"Prefix": "a"}), SynStream(3, {"Prefix": "b"}))
    assert [await peer.hear(), await peer.hear()] == [SynReply(1), SynReply(3)]

    peer.say(Data(3, b"x"))
    assert await peer.hear() == Data(3, b"bx")
    peer.say(Data(1, b"y"))
    assert await peer.hear() == Data(1, b"ay")


async def test_the_end_of_input_ends_the_stream(peer: Peer) -> None:
    peer.say(SynStream(1), Data(1, b"last", fin=True))

    assert [await peer.hear() for _ in range(3)] == [
        SynReply(1),
        Data(1, b"last"),
        Data(1, b"", fin=True),
    ]


async def test_a_stream_may_be_opened_finished(peer: Peer) -> None:
    peer.say(SynStream(1, fin=True))

    assert [await peer.hear(), await peer.hear()] == [SynReply(1), Data(1, b"", fin=True)]


async def test_pings_come_back(peer: Peer) -> None:
    peer.say(Ping(1))

    assert await peer.hear() == Ping(1)


async def test_data_for_a_stream_that_is_gone_is_dropped(peer: Peer) -> None:
    peer.say(SynStream(1), Reset(1), Data(1, b"late"), Ping(1))

    assert [await peer.hear(), await peer.hear()] == [SynReply(1), Ping(1)]


async def test_long_data_is_sent_in_pieces(peer: Peer) -> None:
    peer.say(SynStream(1), Data(1, b"x" * 100_000, fin=True))
    assert await peer.hear() == SynReply(1)

    heard = b""
    while (frame := await peer.hear()) != Data(1, b"", fin=True):
        assert isinstance(frame, Data)
        assert len(frame.data) <= 32 * 1024
        heard += frame.data

    assert heard == b"x" * 100_000


async def test_a_failure_resets_only_its_stream() -> None:
    async def serve(stream: SpdyStream) -> None:
        if "bad" in stream.headers:
            raise ConnectionFailed("nothing listens there")
        await echo(stream)

    peer = Peer()
    serving = asyncio.create_task(accept_streams(peer, serve))
    peer.say(SynStream(1, {"bad": "yes"}))
    assert [await peer.hear(), await peer.hear()] == [SynReply(1), Reset(1)]
    peer.say(SynStream(3), Data(3, b"still here"))
    assert [await peer.hear(), await peer.hear()] == [SynReply(3), Data(3, b"still here")]
    peer.say(GoAway())
    await asyncio.wait_for(serving, 10)


async def test_a_reader_that_does_not_read_costs_no_memory() -> None:
    let_go = asyncio.Event()
    got = 0

    async def serve(stream: SpdyStream) -> None:
        nonlocal got
        await let_go.wait()
        while (data := await stream.read()) is not None:
            got += len(data)

    peer = Peer()
    serving = asyncio.create_task(accept_streams(peer, serve))
    piece = b"x" * (256 * 1024)
    peer.say(SynStream(1))
    assert await peer.hear() == SynReply(1)
    for _ in range(12):
        peer.say(Data(1, piece))
    peer.say(Data(1, b"", fin=True))
    for _ in range(100):  # turns of the loop: more than there are messages
        await asyncio.sleep(0)
    taken = 13 - peer.to_server.qsize()
    let_go.set()

    assert await peer.hear() == Data(1, b"", fin=True)
    peer.hang_up()
    await asyncio.wait_for(serving, 10)
    assert taken <= MAX_BUFFERED // len(piece) + 2
    assert got == 12 * len(piece)
