"""Nobody gets more than there is for them, however many ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cybernet import quotas
from kvestigate.cybernet.ledger import Found, Ledger
from kvestigate.cybernet.quotas import Holding
from kvestigate.cybernet.refusals import NotAllowed, QuotaExceeded, Unavailable
from kvestigate.cybernet.spec import QuotaSpec, read_cyberspace
from kvestigate.errors import Forbidden
from tests.cybernet.conftest import changed

ADA, BOB = "research-agents/ada", "research-agents/bob"


def holding(name: str, owner: str = ADA, gpus: int = 1, memory: int = 10) -> Holding:
    return Holding("node-1", name, owner, gpus, memory)


@pytest.mark.parametrize(
    ("limits", "rule"),
    [
        (QuotaSpec(max_active_workspaces_per_identity=2), "max_active_workspaces_per_identity"),
        (QuotaSpec(max_total_active_workspaces=3), "max_total_active_workspaces"),
        (QuotaSpec(max_total_active_gpu=3), "max_total_active_gpu"),
        (QuotaSpec(max_total_active_memory=39), "max_total_active_memory"),
    ],
)
def test_one_too_many_is_refused_by_the_rule(limits: QuotaSpec, rule: str) -> None:
    held = [holding("a"), holding("b"), holding("c", BOB)]
    with pytest.raises(QuotaExceeded) as caught:
        quotas.check(limits, held, holding("d"))
    assert caught.value.reason == f"quotas.{rule}"


def test_the_last_place_may_be_taken() -> None:
    limits = QuotaSpec(3, 4, 4, 40)
    quotas.check(limits, [holding("a"), holding("b"), holding("c", BOB)], holding("d"))


def test_what_is_there_already_is_not_counted_twice() -> None:
    quotas.check(QuotaSpec(1, 1, 1, 10), [holding("a")], holding("a"))


def test_one_that_takes_no_gpu_is_not_kept_out_by_those_that_do() -> None:
    quotas.check(QuotaSpec(max_total_active_gpu=0), [], holding("a", gpus=0))


def test_what_the_operator_holds_is_not_counted() -> None:
    mixed = [holding("a", ""), holding("b"), holding("c", "other/ada"), holding("d", "research")]
    assert quotas.of_cyberspace(mixed, "research-agents") == [holding("b")]


@given(st.lists(st.builds(holding, st.sampled_from("abcdef"), st.sampled_from([ADA, BOB]))))
def test_each_place_is_counted_once(held: list[Holding]) -> None:
    merged = quotas.merged(held, held)
    assert quotas.usage(merged).workspaces == len({it.place for it in held})


class Hosts:
    """What a ledger asks; a workspace appears when its creation is let go on."""

    def __init__(self) -> None:
        self.there: list[Holding] = []
        self.unreachable: frozenset[str] = frozenset()
        self.all = frozenset({"node-1", "node-2"})
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.questions = 0

    async def discover(self, nodes: tuple[str, ...]) -> Found:
        self.questions += 1
        seen = [it for it in self.there if it.node not in self.unreachable]
        self.asked.set()
        await self.may_answer.wait()
        silent = dict.fromkeys(self.unreachable, "no route")
        return Found(seen, self.all - self.unreachable, silent)


def ledger(hosts: Hosts, most: int, fresh: float = 3600) -> Ledger:
    space = read_cyberspace(changed("quotas", {"max_total_active_workspaces": most}))
    return Ledger(space, hosts.discover, fresh)


@asynccontextmanager
async def creating(of: Ledger, hosts: Hosts, name: str) -> AsyncIterator[None]:
    async with of.promised(holding(name)):
        yield
        hosts.there.append(holding(name))


async def test_creations_at_the_same_time_cannot_take_the_same_place() -> None:
    hosts = Hosts()
    counted = ledger(hosts, 3)
    made: list[str] = []

    async def create(name: str) -> None:
        async with creating(counted, hosts, name):
            made.append(name)
            await asyncio.sleep(0)

    outcomes = await asyncio.gather(*(create(f"w{i}") for i in range(10)), return_exceptions=True)
    assert len(made) == len(hosts.there) == 3
    assert sum(isinstance(it, QuotaExceeded) for it in outcomes) == 7


async def test_those_who_have_too_much_do_not_bother_the_hosts() -> None:
    hosts = Hosts()
    counted = ledger(hosts, 1)
    async with creating(counted, hosts, "a"):
        pass
    for number in range(1000):
        with pytest.raises(QuotaExceeded):
            await _take(counted, f"b{number}")
    assert hosts.questions == 1
    hosts.there.clear()
    counted.gone(holding("a").place)
    await _take(counted, "c")
    assert hosts.questions == 2


async def test_what_was_found_is_not_believed_for_long() -> None:
    hosts = Hosts()
    counted = ledger(hosts, 1, fresh=0)
    async with creating(counted, hosts, "a"):
        pass
    hosts.there.clear()  # by somebody else
    await _take(counted, "b")


async def test_one_that_is_finished_while_the_hosts_are_asked_is_counted() -> None:
    hosts = Hosts()
    counted = ledger(hosts, 1, fresh=0)
    async with creating(counted, hosts, "first"):
        hosts.asked.clear()
        hosts.may_answer.clear()
        second = asyncio.ensure_future(_take(counted, "second"))
        await hosts.asked.wait()  # has been answered without the first one
    hosts.may_answer.set()
    with pytest.raises(QuotaExceeded):
        await second


async def _take(counted: Ledger, name: str) -> None:
    async with counted.promised(holding(name)):
        pass


async def test_a_creation_that_fails_gives_its_place_back() -> None:
    counted = ledger(Hosts(), 1)
    with pytest.raises(RuntimeError):
        async with counted.promised(holding("a")):
            raise RuntimeError("the host is full")
    await _take(counted, "b")


async def test_a_ledger_that_starts_anew_counts_what_is_on_the_hosts() -> None:
    hosts = Hosts()
    async with creating(ledger(hosts, 1), hosts, "a"):
        pass
    with pytest.raises(QuotaExceeded):
        await _take(ledger(hosts, 1), "b")


async def test_a_node_that_cannot_be_asked_holds_what_it_held() -> None:
    hosts = Hosts()
    counted = ledger(hosts, 1)
    async with creating(counted, hosts, "a"):
        pass
    assert counted.known == quotas.Usage(1, 1, 10)
    hosts.unreachable = frozenset({"node-1"})
    with pytest.raises(QuotaExceeded):
        await _take(counted, "b")


async def test_a_node_that_never_answered_may_hold_everything() -> None:
    hosts = Hosts()
    hosts.unreachable = frozenset({"node-2"})
    counted = ledger(hosts, 5)
    with pytest.raises(Unavailable) as caught:
        await _take(counted, "a")
    assert caught.value.reason == "quotas"
    assert "'node-2'" in caught.value.message
    assert "no route" in caught.value.message
    hosts.unreachable = frozenset()
    await _take(counted, "a")
    hosts.unreachable = frozenset({"node-2"})
    await _take(counted, "b")


async def test_pods_that_nobody_can_count_are_not_made() -> None:
    """Workspaces are: not everybody who serves a cyberspace may list the workloads."""
    uncounted = Forbidden("deployments is forbidden")

    async def discover(_: tuple[str, ...]) -> Found:
        return Found([], uncounted=uncounted)

    in_pods = Holding("", "team/app", "research-agents/ada")
    counted = Ledger(read_cyberspace(changed("quotas", {"max_total_active_gpu": 8})), discover)
    await _take(counted, "a")
    with pytest.raises(Unavailable, match="deployments is forbidden"):
        async with counted.promised(in_pods):
            pass
    free = Ledger(read_cyberspace(changed("quotas", {})), discover)
    async with free.promised(in_pods):
        pass


async def test_without_quotas_a_silent_node_keeps_nobody_out() -> None:
    hosts = Hosts()
    hosts.unreachable = frozenset({"node-2"})
    await _take(Ledger(read_cyberspace(changed("quotas", {})), hosts.discover), "a")


async def test_what_is_destroyed_is_no_longer_held() -> None:
    hosts = Hosts()
    counted = ledger(hosts, 1)
    async with creating(counted, hosts, "a"):
        pass
    hosts.there.clear()
    counted.gone(("node-1", "a"))
    assert counted.known == quotas.Usage(0, 0, 0)
    await _take(counted, "b")


async def test_the_place_of_somebody_else_is_not_given_away() -> None:
    hosts = Hosts()
    hosts.there.append(holding("a", BOB))
    with pytest.raises(NotAllowed):
        await _take(ledger(hosts, 5), "a")
