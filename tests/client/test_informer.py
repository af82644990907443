from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import PODS
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.client.informer import Informer
from kvestigate.http.message import Response
from kvestigate.kube.views.meta import PartialObject
from tests.client.scripted import (
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


def listed(version: int, *pods: dict[str, Any]) -> Response:
    return answer({"metadata": {"resourceVersion": str(version)}, "items": list(pods)})


class Consumer:
    """Writes down what it is told and lets tests wait for it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self._news = asyncio.Event()

    def __call__(self, change: Change[PartialObject]) -> None:
        versions = [view.metadata.resource_version for view in (change.old, change.new) if view]
        self.told.append((change.type, f"{change.key}@{'>'.join(versions)}"))
        self._news.set()

    async def wait(self, count: int) -> list[tuple[str, str]]:
        async with asyncio.timeout(10):
            while len(self.told) < count:
                self._news.clear()
                await self._news.wait()
        return self.told


@asynccontextmanager
async def running(informer: Informer[PartialObject]) -> AsyncIterator[None]:
    async with Supervisor("test") as supervisor:
        await supervisor.start("informer", informer.run)
        yield


async def test_the_cache_follows_the_server(connected: OpenTransport) -> None:
    server = Script(
        listed(10, pod("a", 3), pod("b", 4)),
        stream(
            event("MODIFIED", pod("a", 11)),
            event("DELETED", pod("b", 12)),
            event("ADDED", pod("c", 13)),
            then=forever,
        ),
    )
    informer = patient(await connected(server)).informer(PODS, type=PartialObject)
    consumer = Consumer()
    informer.subscribe(consumer)
    assert not informer.synced.is_set()
    async with running(informer):
        assert informer.synced.is_set()
        assert await consumer.wait(5) == [
            ("ADDED", "shop/a@3"),
            ("ADDED", "shop/b@4"),
            ("MODIFIED", "shop/a@3>11"),
            ("DELETED", "shop/b@12"),
            ("ADDED", "shop/c@13"),
        ]
        assert sorted(view.metadata.name for view in informer) == ["a", "c"]
        assert len(informer) == 2
        held = informer.get(Key("shop", "a"))
        assert held is not None
        assert key_of(held) == Key("shop", "a")
        assert informer.get(Key("shop", "b")) is None
    assert server.asked(1)["resourceVersion"] == "10"


async def test_a_new_list_tells_only_what_really_changed(connected: OpenTransport) -> None:
    server = Script(
        listed(10, pod("same", 3), pod("newer", 4), pod("gone", 5)),
        stream(event("ERROR", failure(410, "Expired"))),
        listed(20, pod("same", 3), pod("newer", 14), pod("fresh", 15)),
        stream(event("ADDED", pod("last", 21)), then=forever),
    )
    informer = patient(await connected(server)).informer(PODS, type=PartialObject)
    consumer = Consumer()
    async with running(informer):
        informer.subscribe(consumer)
        assert (await consumer.wait(7))[3:] == [
            ("DELETED", "shop/gone@5"),
            ("MODIFIED", "shop/newer@4>14"),
            ("ADDED", "shop/fresh@15"),
            ("ADDED", "shop/last@21"),
        ]
    assert server.asked(3)["resourceVersion"] == "20"


async def test_consumers_share_one_informer_and_late_ones_learn_the_present(
    connected: OpenTransport,
) -> None:
    more = asyncio.Event()

    async def changes() -> AsyncIterator[bytes]:
        await more.wait()
        yield event("ADDED", pod("b", 11))
        await forever()

    server = Script(listed(10, pod("a", 3)), Response(200, [], changes()))
    informer = patient(await connected(server)).informer(PODS, type=PartialObject)
    early, late, leaver = Consumer(), Consumer(), Consumer()
    informer.subscribe(early)
    async with running(informer):
        informer.subscribe(late)
        leave = informer.subscribe(leaver)
        leave()
        more.set()
        expected = [("ADDED", "shop/a@3"), ("ADDED", "shop/b@11")]
        assert await early.wait(2) == expected
        assert await late.wait(2) == expected
        assert leaver.told == expected[:1]
    assert len(server.requests) == 2


async def test_a_definite_no_before_the_first_list_is_raised(connected: OpenTransport) -> None:
    informer = patient(await connected(Script(status(403, "Forbidden", "not you")))).informer(
        PODS, type=PartialObject
    )
    with pytest.raises(errors.Forbidden, match="not you"):
        await informer.run()


async def test_a_server_that_is_not_up_yet_is_waited_for(connected: OpenTransport) -> None:
    server = Script(
        status(503, "ServiceUnavailable"),
        status(500, "InternalError"),
        listed(10, pod("a", 3)),
        stream(then=forever),
    )
    informer = patient(await connected(server)).informer(PODS, type=PartialObject)
    async with running(informer):
        assert len(informer) == 1


async def test_after_the_first_list_every_failure_is_waited_out(connected: OpenTransport) -> None:
    server = Script(
        listed(10, pod("a", 3)),
        status(403, "Forbidden"),
        status(401, "Unauthorized"),
        listed(20, pod("b", 13)),
        stream(then=forever),
    )
    informer = patient(await connected(server)).informer(PODS, type=PartialObject)
    consumer = Consumer()
    informer.subscribe(consumer)
    async with running(informer):
        assert (await consumer.wait(3))[1:] == [("DELETED", "shop/a@3"), ("ADDED", "shop/b@13")]


async def test_objects_of_a_large_cache_have_equal_parts_in_common(
    connected: OpenTransport,
) -> None:
    labels = {"app": "one-of-very-many"}
    many = [pod(f"pod-{number}", labels=labels) for number in range(3000)]
    server = Script(listed(10, *many), stream(then=forever))
    informer = patient(await connected(server)).informer(PODS, type=PartialObject)
    async with running(informer):
        assert all(view.metadata.labels == labels for view in informer)
        distinct = {id(view.metadata.labels) for view in informer}
        assert 1 < len(distinct) < 2100, "all but the last thousand, and the first"
        assert len({view.metadata.name for view in informer}) == 3000
