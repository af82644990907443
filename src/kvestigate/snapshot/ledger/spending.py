"""What GPUs cost a month: all of them, the allocated ones and the idle ones. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from kvestigate.snapshot.ledger.holdings import Holding
from kvestigate.snapshot.ledger.model import Ledger
from kvestigate.snapshot.prices import HOURS_A_MONTH, Prices

NAMESPACE, WORKLOAD = "namespace", "workload"
WITHOUT = "(none)"
"""The group of pods that do not have the label."""


@dataclass(frozen=True, slots=True)
class Spend:
    gpus: float = 0.0
    """In GPUs; a partition is a part of one."""
    month: float = 0.0
    """Money, for the GPUs whose price is known."""

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.gpus + other.gpus, self.month + other.month)

    def in_cents(self) -> Spend:
        """For results only: sums are made of exact amounts, or each part adds half a cent."""
        return Spend(self.gpus, round(self.month, 2))


NOTHING = Spend()


@dataclass(frozen=True, slots=True)
class Group:
    """The pods of one namespace, workload or value of a label."""

    name: str
    pods: int
    what: dict[str, int]
    held: Spend
    idle: Spend
    unmeasured: Spend
    """Of pods whose devices were not all measured."""
    since: datetime | None
    """When the oldest of its idle pods was created; of all its pods if none is idle."""
    memory_mib: float
    """GPU memory that its idle pods have loaded."""
    idle_since: datetime | None = None
    """From when on all its idle pods did nothing; None if that is unknown."""
    never_used: int = 0
    """Idle pods whose model server nobody has asked since it started."""


@dataclass(frozen=True, slots=True)
class Spending:
    prices: str
    """`assumed prices of 2026-11-01, USD`"""
    currency: str
    by: str
    total: Spend
    """All physical GPUs, allocated or not."""
    allocated: Spend
    idle: Spend
    unmeasured: Spend
    unallocated: Spend
    groups: tuple[Group, ...]
    """The most expensive idle ones first."""
    unpriced: dict[str, float] = field(default_factory=dict)
    """Model -> GPUs whose price is not in the table; no amount of money has them."""
    unknown: tuple[str, ...] = ()
    """Nodes whose number of GPUs is unknown, and pods that hold an unknown part of a GPU."""


def grouping(by: str) -> Callable[[Holding], str]:
    """How pods are grouped: by namespace, by workload, or by the value of a label."""
    if by == NAMESPACE:
        return lambda held: held.namespace
    if by == WORKLOAD:
        return lambda held: f"{held.namespace}/{held.workload}"
    return lambda held: held.labels.get(by, WITHOUT)


def spending(book: Ledger, held: Iterable[Holding], prices: Prices, by: str = WORKLOAD) -> Spending:
    held = list(held)
    name_of = grouping(by)
    members: dict[str, list[Holding]] = {}
    for holding in held:
        members.setdefault(name_of(holding), []).append(holding)
    rates = _Rates(prices)
    groups = [_group(name, own, rates) for name, own in members.items()]
    total, unpriced, unknown = _fleet(book, rates)
    unknown += [f"pod {one.namespace}/{one.pod}" for one in held if one.gpus is None]
    allocated = sum((group.held for group in groups), NOTHING)
    return Spending(
        prices=prices.source,
        currency=prices.currency,
        by=by,
        total=total.in_cents(),
        allocated=allocated.in_cents(),
        idle=sum((group.idle for group in groups), NOTHING).in_cents(),
        unmeasured=sum((group.unmeasured for group in groups), NOTHING).in_cents(),
        unallocated=Spend(
            max(total.gpus - allocated.gpus, 0.0), max(total.month - allocated.month, 0.0)
        ).in_cents(),
        groups=tuple(sorted(map(_in_cents, groups), key=_most_expensive_idle)),
        unpriced=unpriced,
        unknown=tuple(unknown),
    )


def _in_cents(group: Group) -> Group:
    return replace(
        group,
        held=group.held.in_cents(),
        idle=group.idle.in_cents(),
        unmeasured=group.unmeasured.in_cents(),
    )


def _most_expensive_idle(group: Group) -> tuple[float, float, str]:
    return -group.idle.month, -group.held.month, group.name


def spend_of(gpus: float, hourly: float | None) -> Spend:
    """A month of GPUs; no money if their price is unknown."""
    return Spend(gpus, gpus * (hourly or 0.0) * HOURS_A_MONTH)


class _Rates:
    """The prices of models; a fleet has few models and many pods."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._known: dict[str, float | None] = {}

    def of(self, model: str) -> float | None:
        if model not in self._known:
            self._known[model] = self._prices.hourly(model)
        return self._known[model]


def _fleet(book: Ledger, rates: _Rates) -> tuple[Spend, dict[str, float], list[str]]:
    total = NOTHING
    unpriced: dict[str, float] = {}
    unknown: list[str] = []
    for node in book.nodes or ():
        if node.count is None:
            unknown.append(f"node {node.node}")
            continue
        hourly = rates.of(node.model)
        total += spend_of(node.count, hourly)
        if hourly is None:
            name = node.model or node.vendor
            unpriced[name] = unpriced.get(name, 0.0) + node.count
    return total, unpriced, unknown


def _group(name: str, members: list[Holding], rates: _Rates) -> Group:
    idle = [one for one in members if one.idle]
    unmeasured = [one for one in members if one.idle is None]
    what: dict[str, int] = {}
    for one in members:
        for part, count in one.what.items():
            what[part] = what.get(part, 0) + count

    def spend(some: list[Holding]) -> Spend:
        gpus = sum(one.gpus or 0.0 for one in some)
        month = sum((one.gpus or 0.0) * (rates.of(one.model) or 0.0) for one in some)
        return Spend(gpus, month * HOURS_A_MONTH)

    return Group(
        name=name,
        pods=len(members),
        what=what,
        held=spend(members),
        idle=spend(idle),
        unmeasured=spend(unmeasured),
        since=min((one.since for one in idle or members if one.since), default=None),
        memory_mib=sum(one.memory_mib or 0.0 for one in idle),
        idle_since=max((one.idle_since for one in idle if one.idle_since), default=None)
        if idle and all(one.idle_since for one in idle)
        else None,
        never_used=sum(one.serving is not None and one.serving.never_used for one in idle),
    )
