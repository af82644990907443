"""The solver against trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvestigate.planning.model import Domains, Room, Strategy
from kvestigate.planning.solve import most, place
from kvestigate.planning.strategies import STRATEGIES

PACK = next(strategy for strategy in STRATEGIES if strategy.name == "pack")
SPREAD = next(strategy for strategy in STRATEGIES if strategy.name == "spread")


def rooms_of(slots: Sequence[int]) -> list[Room]:
    return [Room(f"n{index}", count, (count, 0, 0)) for index, count in enumerate(slots)]


def every_placement(slots: Sequence[int], replicas: int) -> Iterator[tuple[int, ...]]:
    for counts in product(*(range(min(count, replicas) + 1) for count in slots)):
        if sum(counts) == replicas:
            yield counts


@settings(max_examples=1000, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=8), st.integers(1, 8))
def test_it_fits_exactly_when_some_placement_exists(slots: list[int], replicas: int) -> None:
    rooms = rooms_of(slots)
    all_placements = list(every_placement(slots, replicas))
    assert (most(rooms, replicas) == replicas) == bool(all_placements)
    if not all_placements:
        return
    for strategy in STRATEGIES:
        placed = place(strategy, rooms, replicas)
        assert tuple(placed.get(room.node, 0) for room in rooms) in all_placements
    used = [sum(map(bool, counts)) for counts in all_placements]
    assert len(place(PACK, rooms, replicas)) == min(used)
    assert len(place(SPREAD, rooms, replicas)) == max(used)
    fullest = max(place(SPREAD, rooms, replicas).values())
    assert fullest == min(max(counts) for counts in all_placements)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
@given(slots=st.lists(st.integers(0, 4), max_size=8), replicas=st.integers(1, 5))
def test_a_single_node_takes_all_or_nothing(
    strategy: Strategy, slots: list[int], replicas: int
) -> None:
    rooms = rooms_of(slots)
    fits = most(rooms, replicas, single=True) == replicas
    assert fits == any(count >= replicas for count in slots)
    if fits:
        ((node, count),) = place(strategy, rooms, replicas, single=True).items()
        assert count == replicas <= slots[int(node[1:])]


def reachable(caps: tuple[int, ...], present: tuple[int, ...], skew: int, zero: bool) -> int:
    """The most pods that any order of placing one at a time gets to."""
    seen, frontier, most_placed = {present}, [present], 0
    while frontier:
        levels = frontier.pop()
        most_placed = max(most_placed, sum(levels) - sum(present))
        floor = 0 if zero else min(levels)
        for index, level in enumerate(levels):
            after = (*levels[:index], level + 1, *levels[index + 1 :])
            room = level - present[index] < caps[index]
            if room and level + 1 - floor <= skew and after not in seen:
                seen.add(after)
                frontier.append(after)
    return most_placed


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4),
    st.integers(1, 3),
    st.booleans(),
)
def test_spread_constraints_admit_what_some_order_of_placing_reaches(
    zones: list[tuple[int, int]], skew: int, from_zero: bool
) -> None:
    caps, present = (tuple(it) for it in zip(*zones, strict=True))
    rooms = rooms_of(caps)
    domains = Domains(
        "zone",
        of={room.node: f"z{index}" for index, room in enumerate(rooms)},
        present={f"z{index}": count for index, count in enumerate(present)},
        skew=skew,
        from_zero=from_zero,
    )
    best = reachable(caps, present, skew, from_zero)
    assert most(rooms, 100, domains) == best
    for strategy in STRATEGIES:
        placed = place(strategy, rooms, best, domains)
        assert sum(placed.values()) == best


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_replicas_that_stay_together_fit_when_some_domain_takes_them_all(
    nodes: list[tuple[int, int]], replicas: int
) -> None:
    rooms = rooms_of([slots for slots, _ in nodes])
    of = {room.node: f"z{zone}" for room, (_, zone) in zip(rooms, nodes, strict=True)}
    domains = Domains("zone", of, dict.fromkeys(of.values(), 0), together=True)
    by_zone = [[slots if zone == chosen else 0 for slots, zone in nodes] for chosen in range(3)]
    possible = [it for slots in by_zone for it in every_placement(slots, replicas)]
    assert (most(rooms, replicas, domains) == replicas) == bool(possible)
    if possible:
        for strategy in STRATEGIES:
            placed = place(strategy, rooms, replicas, domains)
            assert tuple(placed.get(room.node, 0) for room in rooms) in possible
        used = [sum(map(bool, counts)) for counts in possible]
        assert len(place(PACK, rooms, replicas, domains)) == min(used)
        assert len(place(SPREAD, rooms, replicas, domains)) == max(used)


def test_domains_are_filled_through_their_nodes() -> None:
    rooms = rooms_of([2, 2, 4, 1])
    of = {"n0": "a", "n1": "a", "n2": "b"}
    domains = Domains("zone", of, {"a": 0, "b": 0}, skew=1)
    assert most(rooms, 9, domains) == 8  # the last node has no zone
    assert place(PACK, rooms, 4, domains) == {"n0": 2, "n2": 2}
    assert place(SPREAD, rooms, 4, domains) == {"n0": 1, "n1": 1, "n2": 2}
    assert most(rooms, 9, Domains("zone", of, {"a": 0, "b": 0}, each=1)) == 2


def test_the_tightest_nodes_are_used_up_first() -> None:
    bestfit, spread, _ = STRATEGIES
    rooms = rooms_of([8, 3, 1])
    assert place(bestfit, rooms, 5) == {"n2": 1, "n1": 3, "n0": 1}
    assert place(spread, rooms, 5) == {"n0": 2, "n1": 2, "n2": 1}
