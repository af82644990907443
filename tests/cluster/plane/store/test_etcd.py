"""The store on a real etcd: it keeps the contract, and servers share their planes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kvestigate.cluster.plane.store.errors import (
    Compacted,
    Exists,
    Mismatch,
    NoPlane,
    PlaneExists,
    StoreFailed,
)
from kvestigate.cluster.plane.store.etcd.backend import EtcdBackend
from kvestigate.cluster.plane.store.etcd.client import EtcdClient, prefix_end
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import assemble
from kvestigate.cluster.plane.store.store import Store
from kvestigate.errors import UsageError
from tests.cluster.plane.store.conftest import Etcd
from tests.contracts.store import (
    PODS,
    MakeBackend,
    StoreContract,
    contents,
    exact,
    names,
    put,
    read,
    revisions,
    value_of,
)


class TestEtcd(StoreContract):
    @pytest.fixture
    def make_backend(self, shared_etcd: Etcd, prefix: str) -> MakeBackend:
        return lambda: EtcdBackend([shared_etcd.url], prefix=prefix)


@asynccontextmanager
async def servers(
    etcd: Etcd, prefix: str, retention: Retention | None = None
) -> AsyncIterator[tuple[Store, Store]]:
    """Two on the same planes."""
    async with (
        Store(EtcdBackend([etcd.url], prefix=prefix), retention) as a,
        Store(EtcdBackend([etcd.url], prefix=prefix), retention) as b,
    ):
        yield a, b


async def until(store: Store, name: str, revision: int) -> Plane:
    """The plane, once this server has seen that revision of it."""
    plane = await store.plane(name)
    if plane.state.revision < revision:
        with plane.subscribe(None) as watch:
            while plane.state.revision < revision:
                await anext(watch)
    return plane


async def test_when_the_leader_dies_nothing_acknowledged_is_lost(
    three_etcds: list[Etcd], prefix: str
) -> None:
    urls = [member.url for member in three_etcds]
    acknowledged: list[str] = []
    news: asyncio.Queue[str] = asyncio.Queue()
    over = asyncio.Event()

    async def write(plane: Plane, server: str) -> None:
        for number in itertools.count():
            if over.is_set():
                return
            name = f"{server}-{number}"
            # What became of a write that failed is open: it is written again.
            with contextlib.suppress(StoreFailed, Exists):
                await plane.write(put(name))
                acknowledged.append(name)
                news.put_nowait(name)

    async with (
        Store(EtcdBackend(urls, prefix=prefix)) as one,
        Store(EtcdBackend(urls[::-1], prefix=prefix)) as other,
    ):
        await one.create("shared")
        planes = [await store.plane("shared") for store in (one, other)]
        with planes[1].subscribe(PODS) as watch:
            writers = [
                asyncio.create_task(write(plane, server))
                for plane, server in zip(planes, ("one", "other"), strict=True)
            ]
            [leader] = [member for member in three_etcds if member.leads]
            await asyncio.to_thread(leader.stop)
            while not news.empty():
                news.get_nowait()
            for _ in range(20):  # the other two are enough to go on with
                await asyncio.wait_for(news.get(), 30)
            await asyncio.to_thread(leader.start)
            over.set()
            await asyncio.gather(*writers)
            last = max(plane.state.revision for plane in planes)
            await until(one, "shared", last)
            await until(other, "shared", last)
            seen: list[int] = []
            while not seen or seen[-1] < last:
                seen += [change.revision for change in await anext(watch)]
        for plane in planes:
            present = {item.name for _, item in plane.state}
            assert set(acknowledged) <= present
        assert seen == sorted(set(seen))
        assert len(seen) == len(present)


async def test_planes_made_on_one_server_are_on_the_other(shared_etcd: Etcd, prefix: str) -> None:
    template = assemble([put("a", "template")])
    async with servers(shared_etcd, prefix) as (a, b):
        one = await a.create("one", template)
        await one.write(put("b"))
        await a.fork("one", ["left", "right"])
        with pytest.raises(PlaneExists):
            await b.create("one")
        with pytest.raises(PlaneExists):
            await b.fork("one", ["more", "right"])
        there = [await b.plane(name) for name in ("one", "left", "right")]
        assert [exact(each.state) for each in there] == [exact(one.state)] * 3
        assert there[1].state.collection(PODS) is there[2].state.collection(PODS)
        assert "more" not in b.planes()

        watch = there[0].subscribe(PODS)
        await a.delete("one")
        with pytest.raises(NoPlane):
            await anext(watch)
        with pytest.raises(NoPlane):
            await there[0].write(put("c"))
        assert a.planes() == b.planes() == ["left", "right"]


async def test_no_increment_is_lost_between_two_servers(shared_etcd: Etcd, prefix: str) -> None:
    async with servers(shared_etcd, prefix) as (a, b):
        await (await a.create("one")).write(put("counter", 0))
        planes = [await store.plane("one") for store in (a, b)]
        conflicts = 0

        async def increment(plane: Plane) -> None:
            nonlocal conflicts
            while True:
                item = plane.state.get(PODS, "default", "counter")
                assert item is not None
                value = value_of(item.data)
                assert isinstance(value, int)
                try:
                    await plane.write(put("counter", value + 1, expect=item.revision))
                except Mismatch:
                    conflicts += 1
                    continue
                return

        async with asyncio.TaskGroup() as tasks:
            for n in range(60):
                tasks.create_task(increment(planes[n % 2]))
        final = await until(b, "one", 61)
        await until(a, "one", 61)
        assert exact(planes[0].state) == exact(planes[1].state)
        assert contents(final.state) == {(PODS, "default", "counter"): 60}
        assert final.state.revision == 61
        assert conflicts > 0


async def test_both_see_the_same_history_without_gaps(shared_etcd: Etcd, prefix: str) -> None:
    writers, writes = 4, 25
    total = 2 * writers * writes
    async with servers(shared_etcd, prefix) as (a, b):
        await a.create("one")
        planes = [await store.plane("one") for store in (a, b)]

        async def write(server: int, writer: int) -> None:
            for n in range(writes):
                await planes[server].write(put(f"{server}-{writer}-{n}"), actor=str(server))

        async def follow(plane: Plane) -> list[tuple[int, str, str]]:
            with plane.subscribe(PODS, since=0) as watch:
                return [
                    (change.revision, change.item.name, change.actor)
                    for change in await read(watch, total)
                ]

        async with asyncio.TaskGroup() as tasks:
            followers = [tasks.create_task(follow(plane)) for plane in planes]
            for server in (0, 1):
                for writer in range(writers):
                    tasks.create_task(write(server, writer))
        seen = [follower.result() for follower in followers]
        assert seen[0] == seen[1]
        assert [revision for revision, _, _ in seen[0]] == list(range(1, total + 1))
        assert len({name for _, name, _ in seen[0]}) == total
        assert planes[0].events_since(0) == planes[1].events_since(0)
    async with Store(EtcdBackend([shared_etcd.url], prefix=prefix)) as late:
        assert exact((await late.plane("one")).state) == exact(planes[0].state)


async def test_a_refusal_rests_on_what_others_have_written(shared_etcd: Etcd, prefix: str) -> None:
    """Whoever learns a revision from one server may use it at the other at once."""
    async with servers(shared_etcd, prefix) as (a, b):
        one, other = await a.create("one"), await b.plane("one")
        for n in range(20):
            added = await one.write(put(f"x-{n}", "a"))
            await other.write(put(f"x-{n}", "b", expect=added.revision))
            with pytest.raises(Exists):
                await one.write(put(f"x-{n}", "c"))
            assert value_of_item(one, f"x-{n}") == "b"


def value_of_item(plane: Plane, name: str) -> object:
    item = plane.state.get(PODS, "default", name)
    assert item is not None
    return value_of(item.data)


async def test_checkpoints_are_shared(shared_etcd: Etcd, prefix: str) -> None:
    async with servers(shared_etcd, prefix, Retention(changes=5)) as (a, b):
        one, other = await a.create("one"), await b.plane("one")
        await one.commit([put("a", "old"), put("b", "old")])
        await one.checkpoint("start")
        last = 1
        for n in range(20):
            last = (await one.write(put("a", n, expect=last))).revision
        await a.idle()
        await until(b, "one", last)
        assert exact(other.checkpoints["start"]) == exact(one.checkpoints["start"])
        (fork,) = await b.fork("one", ["fork"], other.checkpoints["start"].revision)
        assert set(contents(fork.state).values()) == {"old"}
        await other.drop_checkpoint("start")
        await other.write(put("c"))
        await until(a, "one", last + 1)
        assert one.checkpoints == {}


async def test_what_is_too_large_for_one_request_is_written_whole(
    shared_etcd: Etcd, prefix: str
) -> None:
    async with servers(shared_etcd, prefix) as (a, b):
        one, other = await a.create("one"), await b.plane("one")
        with other.subscribe(PODS) as watch:
            await one.commit([put(str(n), "x" * 50_000) for n in range(60)])
            assert len(await read(watch, 60)) == 60
        assert exact(other.state) == exact(one.state)
        await one.write(put("after"))
        await until(b, "one", 61)
    async with Store(EtcdBackend([shared_etcd.url], prefix=prefix)) as late:
        assert exact((await late.plane("one")).state) == exact(one.state)


async def test_nothing_is_left_of_what_nobody_can_see(shared_etcd: Etcd, prefix: str) -> None:
    template = assemble([put("a", "template")])
    async with Store(EtcdBackend([shared_etcd.url], prefix=prefix), Retention(changes=5)) as store:
        plane = await store.create("one", template)
        last = 1
        for n in range(100):
            last = (await plane.write(put("a", n, expect=last))).revision
        await store.idle()
        assert await keys_of(shared_etcd, f"{prefix}/log/") < 40
        await store.fork("one", [f"fork-{n}" for n in range(50)])
        for name in store.planes():
            await store.delete(name)
        await store.idle()
    assert await keys_of(shared_etcd, f"{prefix}/") == 0


async def keys_of(etcd: Etcd, prefix: str) -> int:
    client = EtcdClient([etcd.url])
    try:
        start = prefix.encode()
        return (await client.range(start, prefix_end(start), count_only=True)).count
    finally:
        await client.aclose()


async def test_servers_outlive_a_restart_of_etcd(own_etcd: Etcd, prefix: str) -> None:
    backends = [EtcdBackend([own_etcd.url], prefix=prefix, patience=each) for each in (0.2, 10)]
    async with Store(backends[0]) as a, Store(backends[1]) as b:
        one, other = await a.create("one"), await b.plane("one")
        await one.write(put("before"))
        with other.subscribe(PODS, since=0) as watch:
            own_etcd.stop()
            with pytest.raises(StoreFailed, match="etcd does not answer") as caught:
                await one.write(put("lost"))
            assert own_etcd.url in (caught.value.hint or "")
            assert set(contents(one.state)) == {(PODS, "default", "before")}
            waiting = asyncio.create_task(other.write(put("patient")))
            await asyncio.to_thread(own_etcd.start)
            await waiting
            assert names(await read(watch, 2)) == ["before", "patient"]
        await until(a, "one", 2)
        assert exact(one.state) == exact(other.state)


@pytest.mark.parametrize(("kept", "resumes"), [(1000, True), (5, False)])
async def test_a_server_comes_back_after_etcd_has_compacted(
    shared_etcd: Etcd, prefix: str, kept: int, resumes: bool
) -> None:
    """Watchers go on if the history of the plane fills the gap, and are sent away if not."""
    retention = Retention(changes=kept)
    async with (
        Gate(shared_etcd.url) as gate,
        Store(EtcdBackend([shared_etcd.url], prefix=prefix), retention) as a,
        Store(EtcdBackend([gate.url], prefix=prefix), retention) as b,
    ):
        one, gone = await a.create("one"), await a.create("gone")
        other, lost = await b.plane("one"), await b.plane("gone")
        await one.write(put("0"))
        with other.subscribe(PODS, since=0) as watch, lost.subscribe(PODS) as orphan:
            await read(watch, 1)
            gate.close()
            for n in range(1, 30):
                await one.write(put(str(n)))
            await a.delete(gone.name)
            await a.create("new")
            await a.idle()
            await compact(shared_etcd)
            gate.open()
            if resumes:
                assert revisions(await read(watch, 29)) == list(range(2, 31))
            else:
                with pytest.raises(Compacted):
                    await anext(watch)
            with pytest.raises(NoPlane):
                await anext(orphan)
        assert exact(other.state) == exact(one.state)
        assert b.planes() == ["new", "one"]
        assert (await other.write(put("again"))).revision == 31


async def compact(etcd: Etcd) -> None:
    client = EtcdClient([etcd.url])
    try:
        await client.compact((await client.range(b"nothing")).header.revision)
    finally:
        await client.aclose()


class Gate:
    """A way to etcd that can be cut."""

    def __init__(self, url: str) -> None:
        self._target = int(url.rpartition(":")[2])
        self._open = True
        self._pairs: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server

    async def __aenter__(self) -> Gate:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        self._server.close()
        await self._server.wait_closed()

    def open(self) -> None:
        self._open = True

    def close(self) -> None:
        self._open = False
        for each in self._pairs:
            each.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.transport.abort()
            return
        beyond, onward = await asyncio.open_connection("127.0.0.1", self._target)
        pair = {writer, onward}
        self._pairs |= pair
        await asyncio.gather(_pump(reader, onward), _pump(beyond, writer))
        self._pairs -= pair


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    sink.transport.abort()


@pytest.mark.parametrize("url", ["127.0.0.1:2379", "ftp://127.0.0.1", "http://", "http://x:y"])
def test_what_is_no_address_of_an_etcd(url: str) -> None:
    with pytest.raises(UsageError, match="--etcd"):
        EtcdBackend([url])
