"""Managers: ready when they say so, patient with failures, quiet when they go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from kvestigate import errors
from kvestigate.client.api import Api
from kvestigate.client.cache import Key
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context, slow_start
from kvestigate.cluster.controllers.kinds import SERVICE_ACCOUNTS
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Manager
from kvestigate.http.message import Request, Response
from tests.cluster.controllers.conftest import Bed


class Watcher:
    """Fails as it is told to, and notes what it has seen."""

    def __init__(self, context: Context, failures: list[Exception] | None = None) -> None:
        self.accounts = context.watch(SERVICE_ACCOUNTS, owners.itself)
        self.failures = failures or []
        self.seen: asyncio.Queue[Key] = asyncio.Queue()

    async def reconcile(self, key: Key) -> float | None:
        if self.failures:
            raise self.failures.pop()
        self.seen.put_nowait(key)
        return None


async def test_caches_are_full_when_it_is_ready(embedded: Bed) -> None:
    made: list[Watcher] = []

    def factory(context: Context) -> Watcher:
        made.append(Watcher(context))
        return made[-1]

    async with Manager(embedded.api, {"watcher": factory}):
        assert len(made[0].accounts) == 4


@pytest.mark.parametrize(
    "failure",
    [errors.Conflict("stale"), errors.ConnectionFailed("gone"), RuntimeError("broken")],
    ids=["conflict", "connection", "bug"],
)
async def test_a_failure_is_tried_again(
    embedded: Bed, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    made: list[Watcher] = []

    def factory(context: Context) -> Watcher:
        made.append(Watcher(context, [failure]))
        return made[-1]

    async with Manager(embedded.api, {"watcher": factory}), asyncio.timeout(10):
        seen = {await made[0].seen.get() for _ in range(4)}
    assert len(seen) == 4


async def test_the_pace_is_set_by_somebody_else_and_the_order_by_rank(embedded: Bed) -> None:
    turns: list[tuple[int, Callable[[], object]]] = []
    asked = asyncio.Event()
    made: dict[str, Watcher] = {}

    def factory(context: Context) -> Watcher:
        return made.setdefault(context.name, Watcher(context))

    def pace(rank: int, begin: Callable[[], object]) -> None:
        turns.append((rank, begin))
        asked.set()

    both = {"one": factory, "two": factory}
    async with Manager(embedded.api, both, workers=3, pace=pace), asyncio.timeout(10):
        assert [rank for rank, _ in turns] == [0, 1]
        assert made["one"].seen.empty()
        asked.clear()
        turns.pop()[1]()
        await asked.wait()  # one of the four is left for another turn
        assert [await made["two"].seen.get() for _ in range(3)]
        assert [rank for rank, _ in turns] == [0, 1]
        assert (made["one"].seen.empty(), made["two"].seen.empty()) == (True, True)


async def test_leaving_lets_the_work_in_hand_finish(embedded: Bed) -> None:
    started, done = asyncio.Event(), asyncio.Event()

    class Slow(Watcher):
        async def reconcile(self, key: Key) -> float | None:
            started.set()
            await embedded.create("configmaps", {"metadata": {"name": f"by-{key.namespace}"}})
            done.set()
            return None

    async with Manager(embedded.api, {"slow": Slow}, workers=1):
        await started.wait()
    assert done.is_set()


async def test_a_server_that_refuses_stops_the_start() -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, body=b"no")

    api = Api(InProcessTransport(refuse))
    with pytest.raises(BaseExceptionGroup) as caught:
        async with Manager(api, dict(CONTROLLERS)):
            pass
    assert caught.group_contains(errors.Forbidden)


async def test_batches_double_and_stop_at_a_failure() -> None:
    tried = 0

    async def work() -> None:
        nonlocal tried
        tried += 1
        raise errors.Forbidden("no")

    with pytest.raises(errors.Forbidden):
        await slow_start([work] * 100)
    assert tried == 1


def test_every_controller_is_known_by_its_upstream_name() -> None:
    assert all(name.endswith("-controller") for name in CONTROLLERS)
