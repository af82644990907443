from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from kvestigate import errors
from kvestigate.client.api import Api
from kvestigate.client.logs import LogOptions
from tests.client.scripted import OpenTransport, Script, forever, patient, status, stream


async def lines(api: Api, options: LogOptions, count: int | None = None) -> list[bytes]:
    found: list[bytes] = []
    async with aclosing(api.logs("web", options)) as stream:
        async with asyncio.timeout(10):
            async for line in stream:
                found.append(line)
                if len(found) == count:
                    break
    return found


async def break_off() -> None:
    raise errors.ConnectionFailed("the connection broke")


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (LogOptions(), {}),
        (LogOptions(container="main", previous=True), {"container": "main", "previous": "true"}),
        (LogOptions(tail=0, timestamps=True), {"tailLines": "0", "timestamps": "true"}),
        (LogOptions(since_seconds=60), {"sinceSeconds": "60"}),
        (LogOptions(since_time="2026-01-02T03:04:05Z"), {"sinceTime": "2026-01-02T03:04:05Z"}),
        (
            LogOptions(follow=True, reconnect=True),
            {"follow": "true", "timestamps": "true"},
        ),
    ],
)
async def test_options_are_the_query(
    connected: OpenTransport, options: LogOptions, asked: dict[str, str]
) -> None:
    server = Script(stream(b"2026-01-02T03:04:05Z a\n"))
    await lines(patient(await connected(server)), options)
    assert server.asked() == asked
    assert server.requests[0].path == "/api/v1/namespaces/shop/pods/web/log"


async def test_lines_are_whole_wherever_they_were_cut(connected: OpenTransport) -> None:
    api = patient(await connected(Script(stream(b"on", b"e\ntw", b"o\n\nlast"))))
    assert await lines(api, LogOptions()) == [b"one", b"two", b"", b"last"]


async def test_followed_lines_come_as_they_are_written(connected: OpenTransport) -> None:
    ended = asyncio.Event()
    api = patient(await connected(Script(stream(b"one\ntwo\n", then=forever, ended=ended))))
    assert await lines(api, LogOptions(follow=True), count=2) == [b"one", b"two"]
    async with asyncio.timeout(10):
        await ended.wait()


FOLLOW = LogOptions(follow=True, reconnect=True, tail=10, since_seconds=60)


async def test_after_a_break_no_line_is_lost_or_doubled(connected: OpenTransport) -> None:
    first = (
        b"2026-01-01T00:00:01.1Z early\n"
        b"2026-01-01T00:00:02.1Z same\n"
        b"2026-01-01T00:00:02.1Z same\n"
        b"2026-01-01T00:00:02.3Z ahead\n"
        b"2026-01-01T00:00:02.4Z ha"
    )
    # The server repeats the second it was asked from, and what came meanwhile is in it.
    second = (
        b"2026-01-01T00:00:02.1Z same\n"
        b"2026-01-01T00:00:02.1Z same\n"
        b"2026-01-01T00:00:02.2Z behind\n"
        b"2026-01-01T00:00:02.3Z ahead\n"
        b"2026-01-01T00:00:02.4Z half\n"
        b"2026-01-01T00:00:03.1Z new\n"
    )
    third = b"2026-01-01T00:00:03.1Z new\n2026-01-01T00:00:03.2Z last\n"
    server = Script(stream(first, then=break_off), stream(second, then=break_off), stream(third))
    api = patient(await connected(server))
    assert await lines(api, FOLLOW) == [
        b"early",
        b"same",
        b"same",
        b"ahead",
        b"behind",
        b"half",
        b"new",
        b"last",
    ]
    again = {"follow": "true", "timestamps": "true"}
    assert server.asked(1) == again | {"sinceTime": "2026-01-01T00:00:02Z"}
    assert server.asked(2) == again | {"sinceTime": "2026-01-01T00:00:03Z"}


async def test_after_a_break_a_tail_does_not_grow_backwards(connected: OpenTransport) -> None:
    tail = b"2026-01-01T00:00:02.15Z third\n"
    whole = b"2026-01-01T00:00:02Z first\n2026-01-01T00:00:02.1Z second\n" + tail
    more = b"2026-01-01T00:00:02.2Z fourth\n"
    server = Script(stream(tail, then=break_off), stream(whole + more))
    assert await lines(patient(await connected(server)), FOLLOW) == [b"third", b"fourth"]


async def test_a_pod_that_is_gone_after_a_break_ends_the_log(connected: OpenTransport) -> None:
    gone = status(404, "NotFound", "gone", details={"name": "web"})
    server = Script(stream(b"2026-01-01T00:00:01Z a\n", then=break_off), gone)
    assert await lines(patient(await connected(server)), FOLLOW) == [b"a"]


@pytest.mark.parametrize("options", [LogOptions(), FOLLOW], ids=["once", "followed"])
async def test_a_pod_that_never_was_is_an_error(
    connected: OpenTransport, options: LogOptions
) -> None:
    gone = status(404, "NotFound", 'pods "web" not found', details={"name": "web"})
    api = patient(await connected(Script(gone)))
    with pytest.raises(errors.NotFound, match="web"):
        await lines(api, options)


async def test_without_reconnection_a_break_is_an_error(connected: OpenTransport) -> None:
    api = patient(await connected(Script(stream(b"one\n", then=break_off))))
    with pytest.raises(errors.ConnectionFailed):
        await lines(api, LogOptions(follow=True))
