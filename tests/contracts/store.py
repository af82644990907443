"""What every store promises, whatever its backend. A backend's tests inherit `StoreContract`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias

import msgspec
import pytest

from kvestigate.cluster.plane.store.errors import (
    Compacted,
    Exists,
    Lagged,
    Mismatch,
    Missing,
    NoPlane,
    PlaneExists,
    Refused,
)
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.interface import Backend
from kvestigate.cluster.plane.store.model import (
    ABSENT,
    Change,
    ChangeType,
    Put,
    Remove,
    ResourceKey,
)
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState, assemble, diff
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.store.watch import Subscription

PODS: ResourceKey = ("", "pods")
NODES: ResourceKey = ("", "nodes")
JOBS: ResourceKey = ("batch", "jobs")

MakeBackend: TypeAlias = Callable[[], Backend]


def put(
    name: str,
    value: object = 0,
    expect: int = ABSENT,
    *,
    resource: ResourceKey = PODS,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
) -> Put:
    """A write of an object whose whole content is `value`."""
    body = msgspec.json.encode(
        {
            "metadata": {"name": name, "resourceVersion": msgspec.Raw(b'"\0"')},
            "value": value,
        }
    )
    return Put(
        resource,
        namespace,
        name,
        f"uid-{name}",
        body,
        expect,
        labels or {},
        owners=("owner",),
        fields=("field",),
    )


def remove(name: str, expect: int, *, resource: ResourceKey = PODS) -> Remove:
    return Remove(resource, "default", name, expect)


def value_of(data: bytes) -> object:
    return msgspec.json.decode(data)["value"]


def contents(state: PlaneState) -> dict[tuple[ResourceKey, str, str], object]:
    """A state as a plain dict."""
    return {(resource, item.namespace, item.name): value_of(item.data) for resource, item in state}


def exact(state: PlaneState) -> tuple[int, list[object]]:
    """A state with everything that must survive a restart."""
    return state.revision, [(resource, msgspec.structs.astuple(item)) for resource, item in state]


def names(items: Sequence[Change]) -> list[str]:
    return [change.item.name for change in items]


def revisions(changes: Sequence[Change]) -> list[int]:
    return [change.revision for change in changes]


async def read(subscription: Subscription, count: int) -> list[Change]:
    """Exactly `count` changes."""
    found: list[Change] = []
    while len(found) < count:
        found += await anext(subscription)
    assert len(found) == count
    return found


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class StoreContract:
    """A subclass gives a `make_backend` fixture."""

    @pytest.fixture
    async def store(self, make_backend: MakeBackend) -> AsyncIterator[Store]:
        async with Store(make_backend()) as store:
            yield store

    @pytest.fixture
    async def plane(self, store: Store) -> Plane:
        return await store.create("one")

    async def test_an_object_lives_and_dies(self, plane: Plane) -> None:
        added = await plane.write(put("a", 1, labels={"app": "x"}), actor="alice")
        changed = await plane.write(put("a", 2, expect=added.revision), actor="bob")
        held = plane.state
        gone = await plane.write(remove("a", changed.revision), actor="carol")

        assert [change.type for change in (added, changed, gone)] == list(ChangeType)
        assert revisions((added, changed, gone)) == [1, 2, 3]
        assert [change.actor for change in plane.events_since(0)] == ["alice", "bob", "carol"]
        assert (added.previous, changed.previous, gone.previous) == (
            None,
            added.item,
            changed.item,
        )
        assert changed.item.created_revision == 1
        assert changed.item.owners == ("owner",)
        assert changed.item.fields == ("field",)
        assert (added.item.labels, changed.item.labels) == ({"app": "x"}, {})
        assert gone.item.data == b'{"metadata":{"name":"a","resourceVersion":"3"},"value":2}'
        assert plane.state.get(PODS, "default", "a") is None
        assert held.get(PODS, "default", "a") is changed.item
        assert plane.state.revision == 3
        assert not list(plane.state)

    @pytest.mark.parametrize(
        ("mutation", "error", "actual"),
        [
            (put("a"), Exists, 1),
            (put("a", expect=7), Mismatch, 1),
            (put("b", expect=7), Missing, 0),
            (remove("a", 7), Mismatch, 1),
            (remove("b", 1), Missing, 0),
            (remove("b", ABSENT), Missing, 0),
        ],
    )
    async def test_a_write_with_a_wrong_expectation_changes_nothing(
        self, plane: Plane, mutation: Put | Remove, error: type[Refused], actual: int
    ) -> None:
        await plane.write(put("a"))
        before = plane.state
        with pytest.raises(error, match=f'pods "default/{mutation.name}"') as caught:
            await plane.write(mutation)
        assert (caught.value.expected, caught.value.actual) == (mutation.expect, actual)
        assert plane.state is before
        assert (await plane.write(put("c"))).revision == before.revision + 1

    async def test_a_transaction_happens_whole_or_not_at_all(self, plane: Plane) -> None:
        await plane.write(put("a"))
        with pytest.raises(Mismatch):
            await plane.commit([put("b"), put("a", expect=9)])
        assert contents(plane.state) == {(PODS, "default", "a"): 0}

        changes = await plane.commit([put("b"), put("b", 1, expect=2), remove("a", 1)], "me")
        assert revisions(changes) == [2, 3, 4]
        assert contents(plane.state) == {(PODS, "default", "b"): 1}
        assert await plane.commit([]) == []
        assert plane.state.revision == 4

    async def test_lists_are_ordered_by_namespace_and_name(self, plane: Plane) -> None:
        keys = [("b", "x"), ("a", "y"), ("a", "x"), ("b-1", "x"), ("a", "x-1"), ("b", "a")]
        for namespace, name in keys:
            await plane.write(put(name, namespace=namespace))
        await plane.write(put("n", resource=NODES, namespace=""))
        pods = plane.state.collection(PODS)

        def listed(
            namespace: str | None = None, after: tuple[str, str] | None = None
        ) -> list[tuple[str, str]]:
            return [(item.namespace, item.name) for item in pods.items(namespace, after)]

        assert listed() == sorted(keys)
        assert listed("a") == [("a", "x"), ("a", "x-1"), ("a", "y")]
        assert listed("none") == []
        for key in [*keys, ("a", "w"), ("aa", ""), ("z", "z")]:
            assert listed(None, key) == [each for each in sorted(keys) if each > key]
        assert listed("a", ("a", "x")) == [("a", "x-1"), ("a", "y")]
        assert (len(pods), pods.count(), pods.count("a"), pods.count("none")) == (6, 6, 3, 0)

    @pytest.mark.parametrize("reading", ["tip", "state"])
    async def test_no_increment_is_lost(self, plane: Plane, reading: str) -> None:
        await plane.write(put("counter", 0))

        async def increment() -> None:
            while True:
                state = plane.tip if reading == "tip" else plane.state
                item = state.get(PODS, "default", "counter")
                assert item is not None
                count = value_of(item.data)
                assert isinstance(count, int)
                try:
                    await plane.write(put("counter", count + 1, expect=item.revision))
                except Mismatch:
                    continue
                return

        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(increment())
        assert contents(plane.state) == {(PODS, "default", "counter"): 100}
        assert plane.state.revision == 101

    async def test_who_is_refused_can_read_why(self, plane: Plane) -> None:
        first = asyncio.create_task(plane.write(put("a", "first")))
        with pytest.raises(Exists):
            await asyncio.gather(plane.write(put("a", "second")), first)
        assert contents(plane.state) == {(PODS, "default", "a"): "first"}
        await first

    async def test_readers_see_a_write_no_later_than_its_writer_and_no_earlier_than_watchers(
        self, plane: Plane
    ) -> None:
        with plane.subscribe(PODS) as watch:
            change = await plane.write(put("a"))
            assert plane.state.get(PODS, "default", "a") is change.item
            (seen,) = await read(watch, 1)
            assert seen is change

    async def test_watches_have_no_gap_and_no_repeat(self, plane: Plane) -> None:
        writers, writes = 8, 50
        total = writers * writes

        async def write(writer: int) -> None:
            for n in range(writes):
                await plane.write(put(f"{writer}-{n}"))
                await asyncio.sleep(0)

        async def follow(since: int, restart_every: int) -> list[int]:
            """Watch to the end, starting anew now and then, as clients do."""
            seen: list[int] = []
            while len(seen) < total:
                with plane.subscribe(PODS, since=seen[-1] if seen else since) as watch:
                    for _ in range(restart_every):
                        seen += revisions(await anext(watch))
                        if len(seen) == total:
                            break
            return seen

        async with asyncio.TaskGroup() as tasks:
            followers = [tasks.create_task(follow(0, each)) for each in (1, 2, 7, 1000)]
            for writer in range(writers):
                tasks.create_task(write(writer))
            await plane.write(put("one more", resource=JOBS))
            followers.append(tasks.create_task(follow(0, 3)))
        changes = plane.events_since(0)
        assert revisions(changes) == list(range(1, total + 2))
        pods = [change.revision for change in changes if change.resource == PODS]
        for follower in followers:
            assert follower.result() == pods

    async def test_a_watch_sees_its_resource_or_all(self, plane: Plane) -> None:
        with plane.subscribe(PODS) as pods, plane.subscribe(None) as everything:
            await plane.commit([put("a"), put("j", resource=JOBS), put("b")])
            assert names(await read(pods, 2)) == ["a", "b"]
            assert names(await read(everything, 3)) == ["a", "j", "b"]
            assert pods.progress == 3

    async def test_a_watch_from_the_future_waits_for_it(self, plane: Plane) -> None:
        with plane.subscribe(PODS, since=2) as watch:
            for name in "abc":
                await plane.write(put(name))
            assert names(await read(watch, 1)) == ["c"]

    async def test_progress_follows_other_resources_too(self, plane: Plane) -> None:
        with plane.subscribe(PODS) as pods, plane.subscribe(JOBS) as jobs:
            await plane.write(put("j", resource=JOBS))
            await read(jobs, 1)
            assert pods.progress == 1
            await plane.write(put("a"))
            assert pods.progress == 1
            await read(pods, 1)
            assert pods.progress == 2

    async def test_a_slow_watcher_is_cut_and_nobody_else(self, plane: Plane) -> None:
        with plane.subscribe(PODS, limit=5) as slow, plane.subscribe(PODS, limit=6) as fast:
            await plane.commit([put(str(n)) for n in range(6)])
            assert len(await read(fast, 6)) == 6
            with pytest.raises(Lagged):
                await anext(slow)
            with plane.subscribe(PODS, since=slow.progress, limit=5) as resumed:
                assert len(await read(resumed, 6)) == 6

    async def test_a_closed_watch_ends_and_costs_nothing(self, plane: Plane) -> None:
        watch = plane.subscribe(PODS)
        waiting = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await plane.write(put("a"))
        assert names(await read(watch, 1)) == ["a"]
        watch.close()
        with pytest.raises(StopAsyncIteration):
            await anext(watch)

    async def test_closing_the_store_ends_watches(self, make_backend: MakeBackend) -> None:
        async with Store(make_backend()) as store:
            watch = (await store.create("one")).subscribe(PODS)
        with pytest.raises(StopAsyncIteration):
            await anext(watch)

    async def test_idle_planes_have_no_tasks(self, store: Store, plane: Plane) -> None:
        await store.idle()
        before = asyncio.all_tasks()
        await store.fork("one", [f"fork-{n}" for n in range(50)])
        await plane.write(put("a"))
        await store.idle()
        assert asyncio.all_tasks() == before

    async def test_history_is_bounded_by_count(self, make_backend: MakeBackend) -> None:
        async with Store(make_backend(), Retention(changes=10)) as store:
            plane = await store.create("one")
            for n in range(30):
                await plane.write(put(str(n)))
            oldest = plane.compacted
            assert 30 - 11 <= oldest <= 20
            assert revisions(plane.events_since(oldest)) == list(range(oldest + 1, 31))
            for ask in (plane.events_since, plane.at, lambda r: plane.subscribe(PODS, r)):
                with pytest.raises(Compacted) as caught:
                    ask(oldest - 1)
                assert caught.value.oldest == oldest
            assert len(plane.state) == 30

    async def test_history_is_bounded_by_age(self, make_backend: MakeBackend) -> None:
        clock = Clock()
        async with Store(make_backend(), Retention(seconds=60), clock) as store:
            plane = await store.create("one")
            for n in range(10):
                await plane.write(put(str(n)))
                clock.now += 20
            assert all(clock.now - change.time <= 66 + 20 for change in plane.events_since(8))
            assert plane.compacted >= 5

    async def test_history_is_bounded_for_all_planes_together(
        self, make_backend: MakeBackend
    ) -> None:
        async with Store(make_backend(), Retention(total_bytes=100_000)) as store:
            planes = [await store.create(str(n)) for n in range(10)]
            for n in range(10):
                for plane in planes:
                    await plane.write(put(str(n), "x" * 5000))
            kept = [change for each in planes for change in each.events_since(each.compacted)]
            assert 10 <= len(kept) <= 25
            assert min(change.time for change in kept) > 0

    async def test_a_busy_plane_does_not_take_the_history_of_a_quiet_one(
        self, make_backend: MakeBackend
    ) -> None:
        async with Store(make_backend(), Retention(changes=10)) as store:
            quiet, busy = await store.create("quiet"), await store.create("busy")
            await quiet.write(put("a"))
            await busy.commit([put(str(n)) for n in range(5000)])
            for n in range(50):
                await busy.write(put(f"more-{n}"))
            assert revisions(quiet.events_since(0)) == [1]

    async def test_forks_are_independent(self, store: Store, plane: Plane) -> None:
        await plane.commit([put("a", 1), put("b", 1)])
        left, right = await store.fork("one", ["left", "right"])
        assert left.state is right.state is plane.state
        await plane.write(remove("a", 1))
        await left.write(put("a", "left", expect=1))
        await right.write(put("c", "right"))

        assert contents(plane.state) == {(PODS, "default", "b"): 1}
        assert contents(left.state) == {(PODS, "default", "a"): "left", (PODS, "default", "b"): 1}
        assert set(contents(right.state).values()) == {1, "right"}
        assert [each.state.revision for each in (plane, left, right)] == [3, 3, 3]
        assert revisions(left.events_since(2)) == [3]
        with pytest.raises(Compacted):
            left.events_since(1)

    async def test_a_fork_can_start_in_the_past(self, store: Store, plane: Plane) -> None:
        for n in range(3):
            await plane.write(put("a", n, expect=n))
        (past,) = await store.fork("one", ["past"], revision=2)
        assert contents(past.state) == {(PODS, "default", "a"): 1}
        assert (await past.write(put("b"))).revision == 3

    async def test_the_past_can_be_read(self, plane: Plane) -> None:
        states = [plane.state]
        for n in range(5):
            await plane.write(put("a", n, expect=n))
            states.append(plane.state)
        await plane.write(remove("a", 5))
        for state in states:
            assert exact(plane.at(state.revision)) == exact(state)

    async def test_a_checkpoint_outlives_the_history(self, make_backend: MakeBackend) -> None:
        async with Store(make_backend(), Retention(changes=5)) as store:
            plane = await store.create("one")
            await plane.commit([put("a", "old"), put("b", "old")])
            await plane.checkpoint("start")
            last = 1
            for n in range(20):
                last = (await plane.write(put("a", n, expect=last))).revision
            await plane.write(remove("b", 2))
            await store.idle()
            (again,) = await store.fork("one", ["again"], plane.checkpoints["start"].revision)
            assert set(contents(again.state).values()) == {"old"}
            await plane.drop_checkpoint("start")
            assert plane.checkpoints == {}
            with pytest.raises(Compacted):
                await store.fork("one", ["never"], 2)
            with pytest.raises(KeyError):
                await plane.drop_checkpoint("start")

    async def test_restoring_brings_the_objects_back(self, plane: Plane) -> None:
        await plane.commit([put("a", 1), put("b", 1)])
        kept = await plane.checkpoint("start")
        await plane.commit([remove("a", 1), put("b", 2, expect=2), put("c", 3)])
        with plane.subscribe(PODS) as watch:
            changes = await plane.restore(kept, actor="trainer")
            assert await read(watch, 3) == changes
        assert contents(plane.state) == contents(kept)
        assert [(c.item.name, c.type.name, c.revision) for c in changes] == [
            ("a", "ADDED", 6),
            ("b", "MODIFIED", 7),
            ("c", "DELETED", 8),
        ]
        for _, item in plane.state:
            version = msgspec.json.decode(item.data)["metadata"]["resourceVersion"]
            assert version == str(item.revision)

    async def test_a_template_is_where_planes_start(self, store: Store) -> None:
        template = assemble([put("a", "t"), put("n", "t", resource=NODES, namespace="")])
        planes = [await store.create(str(n), template) for n in range(3)]
        assert all(plane.state is template for plane in planes)
        await planes[0].write(put("a", "mine", expect=1))
        assert set(contents(planes[0].state).values()) == {"mine", "t"}
        assert contents(planes[1].state) == contents(template)

    async def test_the_difference_between_two_states(self, store: Store, plane: Plane) -> None:
        await plane.commit([put("same"), put("gone"), put("new", 1, namespace="other")])
        before = plane.state
        (fork,) = await store.fork("one", ["fork"])
        await fork.commit([remove("gone", 2), put("j", resource=JOBS), put("more")])
        await fork.write(put("new", 2, expect=3, namespace="other"))
        found = [
            (d.resource[1], d.before and d.before.name, d.after and d.after.name)
            for d in diff(before, fork.state)
        ]
        assert found == [
            ("pods", "gone", None),
            ("pods", None, "more"),
            ("pods", "new", "new"),
            ("jobs", None, "j"),
        ]
        assert list(diff(before, plane.state)) == []
        assert len(list(diff(fork.state, before))) == 4

    async def test_planes_come_and_go(self, store: Store, plane: Plane) -> None:
        await store.create("two")
        await plane.write(put("a"))
        (fork,) = await store.fork("one", ["fork"])
        watch = plane.subscribe(PODS)
        assert store.planes() == ["fork", "one", "two"]
        await store.delete("one")
        assert store.planes() == ["fork", "two"]
        assert store.loaded("one") is None
        with pytest.raises(NoPlane):
            await anext(watch)
        with pytest.raises(NoPlane):
            await plane.write(put("b"))
        with pytest.raises(NoPlane):
            await store.plane("one")
        with pytest.raises(NoPlane):
            await store.fork("one", ["three"])
        again = await store.create("one")
        assert (len(again.state), again.state.revision) == (0, 0)
        assert contents(fork.state) == {(PODS, "default", "a"): 0}

    async def test_a_name_is_taken_once(self, store: Store) -> None:
        outcomes = await asyncio.gather(
            *(store.create("one") for _ in range(5)), return_exceptions=True
        )
        assert sum(isinstance(each, Plane) for each in outcomes) == 1
        assert sum(isinstance(each, PlaneExists) for each in outcomes) == 4
        with pytest.raises(PlaneExists, match="one"):
            await store.fork("one", ["two", "one"])
        with pytest.raises(PlaneExists, match="two"):
            await store.fork("one", ["two", "two"])
        assert store.planes() == ["one"]

    async def test_a_writer_that_stops_waiting_does_not_stop_the_write(
        self, store: Store, plane: Plane
    ) -> None:
        writing = asyncio.create_task(plane.write(put("a")))
        await asyncio.sleep(0)
        writing.cancel()
        later = await plane.write(put("b"))
        await store.idle()
        assert later.revision == 2
        assert len(plane.state) == 2
        await asyncio.gather(writing, return_exceptions=True)

    async def test_a_refusal_waits_for_a_write_that_its_writer_no_longer_waits_for(
        self, plane: Plane
    ) -> None:
        writing = asyncio.create_task(plane.write(put("a")))
        await asyncio.sleep(0)
        refused = asyncio.create_task(plane.write(put("a")))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(Exists):
            await refused
        assert plane.state.get(PODS, "default", "a") is not None
        await asyncio.gather(writing, return_exceptions=True)
