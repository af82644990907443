from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate import errors
from kvestigate.client.api import PODS
from kvestigate.client.call import Call, Selection
from kvestigate.client.exchange import Exchange
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.client.watching import Event, Watch, opened
from kvestigate.http.message import Response
from kvestigate.kube.views.meta import PartialObject
from tests.client.scripted import (
    InstantClock,
    OpenTransport,
    Script,
    answer,
    event,
    failure,
    forever,
    patient,
    pod,
    status,
    stream,
)


def bookmark(version: int) -> bytes:
    # As the real server writes it: with the nulls of an empty pod.
    empty = {"metadata": {"resourceVersion": str(version), "creationTimestamp": None}}
    return event("BOOKMARK", empty | {"kind": "Pod", "spec": {"containers": None}})


async def break_off() -> None:
    raise errors.ConnectionFailed("the connection broke")


async def take(watch: Watch[PartialObject], count: int) -> list[tuple[str, str]]:
    taken: list[tuple[str, str]] = []
    async with asyncio.timeout(10):
        async for change in watch:
            taken.append((change.type, change.object.metadata.name))
            if len(taken) == count:
                break
    return taken


async def test_events_come_typed_and_in_order(connected: OpenTransport) -> None:
    server = Script(
        stream(
            event("ADDED", pod("a", 5)) + event("MODIFIED", pod("a", 6)),
            bookmark(9),
            event("DELETED", pod("a", 10)),
            then=forever,
        )
    )
    api = patient(await connected(server))
    selection = Selection("shop", labels="x=y")
    async with api.watch(PODS, selection, resource_version="4", type=PartialObject) as watch:
        assert await take(watch, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
        assert watch.resource_version == "10"
    asked = server.asked()
    assert 300 <= int(asked.pop("timeoutSeconds")) <= 600
    assert asked == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "labelSelector": "x=y",
        "resourceVersion": "4",
    }


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        (dict, pod("a", 5)),
        (PartialObject, "a"),
        (bytes, json.dumps(pod("a", 5)).encode()),
    ],
)
async def test_objects_come_as_the_type_that_was_asked_for(
    connected: OpenTransport, type: type[Any], expected: Any
) -> None:
    api = patient(await connected(Script(stream(event("ADDED", pod("a", 5)), then=forever))))
    async with api.watch(PODS, type=type) as watch:
        async with asyncio.timeout(10):
            change: Event[Any] = await anext(aiter(watch))
        assert watch.resource_version == "5"
    if isinstance(change.object, PartialObject):
        assert change.object.metadata.name == expected
    else:
        assert change.object == expected


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"metadata":{}}}',
        b'{"type": "ADDED", "object": {"metadata":{}}}',
        b'{"object":{"metadata":{}},"type":"ADDED"}',
    ],
)
def test_an_event_is_read_however_it_is_written(line: bytes) -> None:
    change, data = opened(line)
    assert (change, json.loads(data)["metadata"]) == ("ADDED", {})


async def test_an_object_of_another_type_is_raised_or_told_and_passed_over(
    connected: OpenTransport,
) -> None:
    odd = {"metadata": {"name": 7, "resourceVersion": "6"}}
    script = event("ADDED", pod("a", 5)) + event("ADDED", odd) + event("ADDED", pod("b", 7))
    strict = patient(await connected(Script(stream(script, then=forever))))
    async with strict.watch(PODS, type=PartialObject) as watch:
        with pytest.raises(errors.InputError, match=r"metadata\.name"):
            await take(watch, 3)
    told: list[str] = []
    api = patient(await connected(Script(stream(script, then=forever))))
    lenient = api.watch(PODS, type=PartialObject, unreadable=lambda error: told.append(str(error)))
    async with lenient as watch:
        assert await take(watch, 2) == [("ADDED", "a"), ("ADDED", "b")]
        assert (watch.resource_version, len(told)) == ("7", 1)


@pytest.mark.parametrize("broken", [False, True], ids=["ended", "broken"])
async def test_the_next_connection_goes_on_after_what_was_seen(
    connected: OpenTransport, broken: bool
) -> None:
    server = Script(
        stream(event("ADDED", pod("a", 5)), bookmark(8), then=break_off if broken else None),
        stream(event("ADDED", pod("b", 9)), then=forever),
    )
    clock = InstantClock()
    api = patient(await connected(server), clock)
    async with api.watch(PODS, resource_version="4", type=PartialObject) as watch:
        assert await take(watch, 2) == [("ADDED", "a"), ("ADDED", "b")]
    assert [server.asked(number)["resourceVersion"] for number in (0, 1)] == ["4", "8"]
    assert bool(clock.pauses) == broken


async def test_half_an_event_is_not_an_event(connected: OpenTransport) -> None:
    whole = event("MODIFIED", pod("a", 6))
    server = Script(
        stream(event("ADDED", pod("a", 5)), whole[:40], then=break_off), stream(whole, then=forever)
    )
    api = patient(await connected(server))
    async with api.watch(PODS, type=PartialObject) as watch:
        assert await take(watch, 2) == [("ADDED", "a"), ("MODIFIED", "a")]
    assert server.asked()["resourceVersion"] == "5"


async def test_watches_that_end_at_once_are_spaced_out(connected: OpenTransport) -> None:
    server = Script(
        *[stream() for _ in range(4)],
        stream(event("ADDED", pod("a", 5)), then=forever),
    )
    clock = InstantClock()
    api = patient(await connected(server), clock)
    async with api.watch(PODS, type=PartialObject) as watch:
        await take(watch, 1)
    assert len(clock.pauses) == 4
    for pause, least in zip(clock.pauses, (0.8, 1.6, 3.2, 6.4), strict=True):
        assert least <= pause <= 2 * least


async def test_failures_after_the_first_connection_are_waited_out(
    connected: OpenTransport,
) -> None:
    server = Script(
        stream(event("ADDED", pod("a", 5))),
        status(503, "ServiceUnavailable"),
        status(500, "InternalError"),
        status(429, "TooManyRequests"),
        answer(b"<html>bad gateway", 502),
        stream(b"upstream timed out\n"),
        stream(event("ERROR", failure(500, "InternalError", "etcd hiccup"))),
        stream(event("ADDED", pod("b", 6)), then=forever),
    )
    api = patient(await connected(server))
    async with api.watch(PODS, type=PartialObject) as watch:
        assert await take(watch, 2) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.parametrize(
    "first",
    [
        lambda: status(410, "Expired", "too old"),
        lambda: stream(event("ERROR", failure(410, "Expired", "too old"))),
        lambda: stream(event("ERROR", failure(410, "Gone", "too old resource version"))),
    ],
    ids=["answer", "event", "old event"],
)
async def test_a_forgotten_version_ends_the_watch(
    connected: OpenTransport, first: Callable[[], Response]
) -> None:
    api = patient(await connected(Script(first())))
    async with api.watch(PODS, resource_version="1", type=PartialObject) as watch:
        with pytest.raises((errors.Expired, errors.Gone), match="too old"):
            await take(watch, 1)


@pytest.mark.parametrize(
    ("answered", "error"),
    [
        (status(403, "Forbidden"), errors.Forbidden),
        (status(503, "ServiceUnavailable"), errors.ServiceUnavailable),
        (answer(b"404 page not found", 404), errors.NotFound),
    ],
)
async def test_what_fails_the_first_connection_is_the_callers(
    connected: OpenTransport, answered: Any, error: type[Exception]
) -> None:
    api = patient(await connected(Script(answered)))
    async with api.watch(PODS, type=PartialObject) as watch:
        with pytest.raises(error):
            await take(watch, 1)


async def test_a_silent_connection_is_replaced(connected: OpenTransport) -> None:
    server = Script(
        stream(event("ADDED", pod("a", 5)), then=forever),
        stream(event("ADDED", pod("b", 6)), then=forever),
    )
    exchange = patient(await connected(server)).exchange
    call = Call("watch", PODS)
    async with Watch(exchange, call, PartialObject, silence=0.02) as watch:
        assert await take(watch, 2) == [("ADDED", "a"), ("ADDED", "b")]
    assert server.asked(1)["resourceVersion"] == "5"


async def test_leaving_the_block_closes_the_connection(connected: OpenTransport) -> None:
    ended = asyncio.Event()
    server = Script(stream(event("ADDED", pod("a", 5)), then=forever, ended=ended))
    api = patient(await connected(server))
    async with api.watch(PODS, type=PartialObject) as watch:
        await take(watch, 1)
    async with asyncio.timeout(10):
        await ended.wait()


@given(
    changes=st.lists(
        st.tuples(st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), st.text(max_size=8)),
        min_size=1,
        max_size=6,
    ),
    cuts=st.lists(st.integers(min_value=0, max_value=800), max_size=8),
)
async def test_events_do_not_depend_on_where_the_pieces_were_cut(
    changes: list[tuple[str, str]], cuts: list[int]
) -> None:
    text = b"".join(event(kind, pod(name)) for kind, name in changes)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(edges)]
    exchange = Exchange(InProcessTransport(Script(stream(*pieces, then=forever))))
    async with Watch(exchange, Call("watch", PODS), PartialObject) as watch:
        assert await take(watch, len(changes)) == changes
