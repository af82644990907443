"""Nobody gets more than there is for them: not by two gateways, nor by one that was stopped."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.cybernet import entries as held
from kvestigate.cybernet.entries import STALE, Entry, Found, Real, Stage
from kvestigate.cybernet.ledger import CONFIG_MAPS, Book, Ledger
from kvestigate.cybernet.quotas import Holding, Usage
from kvestigate.cybernet.refusals import NotAllowed, QuotaExceeded, Unavailable
from kvestigate.cybernet.spec import QuotaSpec, read_cyberspace
from kvestigate.errors import Forbidden
from tests.cybernet.conftest import changed

ADA, BOB = "research-agents/ada", "research-agents/bob"
_names = itertools.count()


def holding(name: str, owner: str = ADA, gpus: int = 1, memory: int = 10) -> Holding:
    return Holding("node-1", name, owner, gpus, memory)


class Hosts:
    """What ledgers find: a workspace is there when its creation has been let go on."""

    def __init__(self) -> None:
        self.there: dict[tuple[str, str], Real] = {}
        self.unreachable: dict[str, str] = {}
        self.apps = Found()

    async def discover(self, nodes: tuple[str, ...]) -> Found:
        answered = frozenset({"node-1", "node-2"} - self.unreachable.keys())
        seen = tuple(it for it in self.there.values() if it.node in answered)
        return replace(
            self.apps, workspaces=seen, answered=answered, unreachable=dict(self.unreachable)
        )

    async def count(self) -> Found:
        return self.apps

    def put(self, wanted: Holding) -> None:
        devices = tuple(range(wanted.gpus))
        real = Real(wanted.node, wanted.name, wanted.owner, devices, memory=wanted.memory)
        self.there[real.place] = real


class Cyberspace:
    """As many ledgers as one likes, over one object and the same hosts."""

    def __init__(self, access: Access, limits: dict[str, Any], **sections: Any) -> None:
        document = changed("quotas", limits)
        document = changed("metadata.name", f"space-{next(_names)}", document)
        for name, value in sections.items():
            document = changed(name, value, document)
        self.space = read_cyberspace(document)
        self.access = access
        self.hosts = Hosts()
        self.book = Book(access, "default", self.space.metadata.name)

    def ledger(self) -> Ledger:
        return Ledger(self.space, self.book, self.hosts.discover, self.hosts.count)

    async def make(self, wanted: Holding, through: Ledger | None = None) -> None:
        async with (through or self.ledger()).making(wanted):
            self.hosts.put(wanted)

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[dict[str, Any]]:
        async with connect(self.access) as api:
            name = f"cyberspace-{self.space.metadata.name}"
            yield await api.get(CONFIG_MAPS, name, namespace="default")


@pytest.mark.parametrize("gateways", [1, 2, 5])
async def test_exactly_the_limit_is_made_however_many_ask_at_once(
    access: Access, gateways: int
) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 7})
    ledgers = [space.ledger() for _ in range(gateways)]
    outcomes = await asyncio.gather(
        *(space.make(holding(f"w{i}"), ledgers[i % gateways]) for i in range(50)),
        return_exceptions=True,
    )
    refused = [it for it in outcomes if it is not None]
    assert len(space.hosts.there) == 7
    assert [type(it) for it in refused] == [QuotaExceeded] * 43


async def test_what_is_made_anew_counts_as_the_larger_of_both(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_gpu": 4})
    await space.make(holding("a", gpus=4))
    ledger = space.ledger()
    async with ledger.making(holding("a", gpus=0)):  # smaller, while another one is asked for
        with pytest.raises(QuotaExceeded):
            await space.make(holding("b", gpus=4))
    assert ledger.known == Usage(1, 4, 10)


async def test_nobody_makes_what_is_being_made(access: Access) -> None:
    space = Cyberspace(access, {})
    async with space.ledger().making(holding("a")):
        with pytest.raises(Unavailable, match="is being made by another request"):
            await space.make(holding("a"))
        with pytest.raises(Unavailable, match="is being made by another request"):
            async with space.ledger().removing(("node-1", "a")):
                pass


async def test_a_creation_that_fails_gives_its_place_back(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 1})
    with pytest.raises(RuntimeError):
        async with space.ledger().making(holding("a")):
            raise RuntimeError("the host is full")
    await space.make(holding("b"))


async def test_a_creation_that_may_have_happened_keeps_its_place(access: Access) -> None:
    """The node does not say: then what was promised counts, until it does."""
    space = Cyberspace(access, {"max_total_active_workspaces": 1})

    async def broken_off() -> None:
        async with space.ledger().making(holding("a")):
            space.hosts.unreachable["node-1"] = "no route"
            raise RuntimeError("the connection was lost")

    with pytest.raises(RuntimeError):
        await broken_off()
    with pytest.raises(QuotaExceeded):
        await space.make(Holding("node-2", "b", ADA))
    space.hosts.unreachable.clear()
    await stale(space)
    await space.make(Holding("node-2", "b", ADA))


async def stale(space: Cyberspace) -> None:
    """As if nobody had said for long that they are at work."""
    async with space.book.opened() as page:
        entries = await page.read()
        assert entries is not None
        old = {
            at: structs.replace(it, renewed=it.renewed - STALE, borrowed_at=it.borrowed_at - STALE)
            for at, it in entries.items()
        }
        assert await page.write(old)


async def test_a_node_that_is_away_keeps_out_only_itself(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 2})
    await space.make(holding("a"))
    space.hosts.unreachable["node-1"] = "no route"
    anew = space.ledger()
    await space.make(Holding("node-2", "b", ADA), anew)
    assert anew.known == Usage(2, 1, 10)
    with pytest.raises(QuotaExceeded):
        await space.make(Holding("node-2", "c", ADA), anew)


async def test_a_gateway_that_was_killed_has_left_written_down_what_it_was_at(
    access: Access,
) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 2})
    entries = {
        it.place: it
        for it in (
            Entry(
                node="node-1", name=name, owner=ADA, stage=Stage.MAKING, gpus=1, renewed=time.time()
            )
            for name in ("made", "not-made")
        )
    }
    async with space.book.opened() as page:
        assert await page.read() is None
        assert await page.write(entries)
    space.hosts.put(holding("made"))
    with pytest.raises(QuotaExceeded):
        await space.make(holding("c"))
    await stale(space)
    _, repairs, _ = await space.ledger().reconcile()
    assert repairs == (
        "workspace 'made' on node 'node-1' was found while making: it is held",
        "workspace 'not-made' on node 'node-1' was counted and is not there: it counts no longer",
    )
    await space.make(holding("c"))


async def test_what_is_removed_counts_until_it_is_gone(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 1})
    await space.make(holding("a"))
    ledger = space.ledger()
    async with ledger.removing(("node-1", "a")):
        with pytest.raises(QuotaExceeded):
            await space.make(holding("b"))
        with pytest.raises(Unavailable, match="is being removed"):
            await space.make(holding("a"))
        space.hosts.there.clear()
    await space.make(holding("b"))
    with pytest.raises(RuntimeError):
        async with ledger.removing(("node-1", "b")):
            raise RuntimeError("it does not end")
    with pytest.raises(QuotaExceeded):
        await space.make(holding("c"))


async def test_gpus_of_runs_are_taken_and_given_back(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_gpu": 2})
    for name in ("a", "b"):
        await space.make(holding(name, gpus=0))
    ledger = space.ledger()
    await ledger.borrow(("node-1", "a"), (0, 1))
    space.hosts.there["node-1", "a"] = Real("node-1", "a", ADA, borrowed=(0, 1), alive=1)
    with pytest.raises(QuotaExceeded):
        await ledger.borrow(("node-1", "b"), (2,))
    with pytest.raises(QuotaExceeded):
        await space.make(holding("c", gpus=1))
    space.hosts.there["node-1", "a"] = Real("node-1", "a", ADA)  # the run has ended
    await stale(space)
    await ledger.borrow(("node-1", "b"), (2,))


async def test_gpus_count_from_when_they_are_borrowed_not_from_when_the_run_is_seen(
    access: Access,
) -> None:
    """Whoever looks at the hosts in between must not give them to another."""
    space = Cyberspace(access, {"max_total_active_gpu": 1})
    for name in ("a", "b"):
        await space.make(holding(name, gpus=0))
    await space.ledger().borrow(("node-1", "a"), (0,))
    await space.ledger().reconcile()
    with pytest.raises(QuotaExceeded):
        await space.ledger().borrow(("node-1", "b"), (1,))


async def test_the_place_of_somebody_else_is_not_given_away(access: Access) -> None:
    space = Cyberspace(access, {})
    await space.make(holding("a", BOB))
    with pytest.raises(NotAllowed) as caught:
        await space.make(holding("a", ADA))
    assert "bob" not in caught.value.message


async def test_a_ledger_that_is_lost_is_made_from_what_is_on_the_hosts(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 1})
    await space.make(holding("a"))
    async with connect(access) as api:
        await api.delete(CONFIG_MAPS, f"cyberspace-{space.space.metadata.name}")
    with pytest.raises(QuotaExceeded):
        await space.make(holding("b"))
    assert await space.ledger().entry(("node-1", "a")) is not None


async def test_a_ledger_that_cannot_be_read_lets_nobody_in(access: Access) -> None:
    space = Cyberspace(access, {})
    await space.make(holding("a"))
    async with space.raw() as found, connect(access) as api:
        body = {**found, "data": {"entries": "spoiled"}}
        await api.replace(CONFIG_MAPS, found["metadata"]["name"], body)
    with pytest.raises(Unavailable, match="cannot be read"):
        await space.make(holding("b"))


async def test_pods_that_nobody_can_count_are_not_made(access: Access) -> None:
    """Workspaces are: not everybody who serves a cyberspace may list the workloads."""
    in_pods = Holding("", "team/app", ADA)
    limited, free = Cyberspace(access, {"max_total_active_gpu": 8}), Cyberspace(access, {})
    for space in (limited, free):
        space.hosts.apps = Found(uncounted=Forbidden("deployments is forbidden"))
    await limited.make(holding("a"))
    with pytest.raises(Unavailable, match="deployments is forbidden"):
        async with limited.ledger().making(in_pods):
            pass
    async with free.ledger().making(in_pods):
        pass
    assert await free.ledger().entry(in_pods.place) is None  # from now on the API tells of it


async def test_apps_in_pods_count_beside_workspaces(access: Access) -> None:
    space = Cyberspace(access, {"max_total_active_workspaces": 3})
    space.hosts.apps = Found(apps=(Holding("", "team/app", ADA, count=2),))
    await space.make(holding("a"))
    with pytest.raises(QuotaExceeded):
        await space.make(holding("b"))


def test_a_lease_ends_when_nobody_asks_and_nothing_runs() -> None:
    def entry(name: str, **more: Any) -> Entry:
        return Entry(node="n", name=name, owner=ADA, renewed=0.0, **more)

    entries = [entry("idle"), entry("busy"), entry("of-an-app"), entry("made", stage=Stage.MAKING)]
    entries.append(Entry(node="n", name="asked-about", owner=ADA, renewed=90.0))
    owners = {"of-an-app": f"{ADA} app team/x"}
    found = Found(
        tuple(
            Real("n", it.name, owners.get(it.name, ADA), alive=it.name == "busy") for it in entries
        )
    )
    by_place = {it.place: it for it in entries}
    gone = held.abandoned(by_place, found, ttl=50, now=100)
    assert [it.name for it in gone] == ["idle"]


_PLACES = st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from("abc"))
_ENTRIES = st.lists(
    st.builds(
        lambda place, owner, gpus, stage, renewed: Entry(
            node=place[0], name=place[1], owner=owner, gpus=gpus, stage=stage, renewed=renewed
        ),
        _PLACES,
        st.sampled_from([ADA, BOB]),
        st.integers(0, 3),
        st.sampled_from(Stage),
        st.sampled_from([0.0, 1000.0]),
    )
).map(lambda found: {it.place: it for it in found})
_REALS = st.lists(
    st.builds(
        lambda place, owner, gpus: Real(place[0], place[1], owner, tuple(range(gpus))),
        _PLACES,
        st.sampled_from([ADA, BOB]),
        st.integers(0, 3),
    )
).map(lambda found: tuple({it.place: it for it in found}.values()))


@given(_ENTRIES, _REALS)
def test_whatever_is_there_counts_after_it_was_looked_at(
    entries: dict[tuple[str, str], Entry], reals: tuple[Real, ...]
) -> None:
    found = Found(reals, answered=frozenset({"n1", "n2"}))
    result = held.reconciled(entries, found, now=1000.0)
    for real in reals:
        counted = result.entries[real.place]
        fresh = entries.get(real.place)
        if fresh is None or fresh.stage is Stage.HELD or fresh.renewed < 1000.0:
            assert (counted.owner, counted.gpus) == (real.owner, len(real.devices))
    again = held.reconciled(result.entries, found, now=1000.0)
    assert again.entries == result.entries
    assert again.repairs == ()


@given(_ENTRIES, st.integers(0, 4), st.integers(0, 5))
def test_no_reservation_exceeds_a_quota(
    entries: dict[tuple[str, str], Entry], gpus: int, limit: int
) -> None:
    wanted = Holding("n3", "new", ADA, gpus)
    try:
        after = held.reserved(entries, wanted, QuotaSpec(max_total_active_gpu=limit), (), 0.0)
    except QuotaExceeded:
        assert sum(it.gpus for it in entries.values()) + gpus > limit
    else:
        assert not gpus or sum(it.gpus for it in after.values()) <= limit
