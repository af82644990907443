"""Placements of a demand, by strategy. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kvestigate.planning.filling import allot
from kvestigate.planning.model import Domains, Placement, Room, Strategy


def most(
    rooms: Sequence[Room], replicas: int, domains: Domains | None = None, *, single: bool = False
) -> int:
    """How many of `replicas` fit. The number is exact, not an estimate."""
    if single:
        return min(replicas, max((room.slots for room in rooms), default=0))
    if domains is not None:
        return sum(allot(domains, _slots(rooms, domains), replicas).values())
    return min(replicas, sum(room.slots for room in rooms))


def place(
    strategy: Strategy,
    rooms: Sequence[Room],
    replicas: int,
    domains: Domains | None = None,
    *,
    single: bool = False,
) -> Placement:
    """Node -> replicas, for a number of replicas that fits according to `most`."""
    ordered = sorted(rooms, key=strategy.order)
    if single:
        return {next(room.node for room in ordered if room.slots >= replicas): replicas}
    if domains is None:
        return strategy.fill(ordered, replicas)
    members: dict[str, list[Room]] = {}
    for room in ordered:
        members.setdefault(domains.of.get(room.node, ""), []).append(room)
    if domains.together:
        slots = _slots(rooms, domains)
        fills = [
            strategy.fill(members[name], replicas) for name in slots if slots[name] >= replicas
        ]
        return (max if strategy.wide else min)(fills, key=len)
    placed: Placement = {}
    for name, count in allot(domains, _slots(rooms, domains), replicas).items():
        if count:
            placed |= strategy.fill(members[name], count)
    return placed


def _slots(rooms: Sequence[Room], domains: Domains) -> Counter[str]:
    slots: Counter[str] = Counter()
    for room in rooms:
        if room.node in domains.of:
            slots[domains.of[room.node]] += room.slots
    return slots
