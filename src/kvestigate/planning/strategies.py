"""PURE. The strategies. Each is given rooms with enough slots together, and fills them.

Replicas are alike, so a placement is a count per node and every strategy is exact: it places
all replicas whenever they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvestigate.planning.model import Placement, Room


@dataclass(frozen=True, slots=True)
class Strategy:
    name: str
    summary: str
    order: Callable[[Room], tuple[object, ...]]
    """The nodes that sort first are used first."""
    fill: Callable[[Sequence[Room], int], Placement]


def one_after_another(rooms: Sequence[Room], replicas: int) -> Placement:
    """Fill each node before the next is begun."""
    placed: Placement = {}
    for room in rooms:
        taken = min(room.slots, replicas)
        if taken:
            placed[room.node] = taken
            replicas -= taken
        if not replicas:
            break
    return placed


def in_turns(rooms: Sequence[Room], replicas: int) -> Placement:
    """One replica for every node that has room, then a second one, and so on."""
    placed: Placement = {}
    open_rooms = [room for room in rooms if room.slots]
    level = 0
    while replicas and open_rooms:
        level += 1
        for room in open_rooms[:replicas]:
            placed[room.node] = level
        replicas -= min(replicas, len(open_rooms))
        open_rooms = [room for room in open_rooms if room.slots > level]
    return placed


STRATEGIES: tuple[Strategy, ...] = (
    Strategy(
        "bestfit",
        "the tightest nodes first: large free blocks stay whole",
        lambda room: (room.spare, room.node),
        one_after_another,
    ),
    Strategy(
        "spread",
        "as many nodes as possible: losing one costs least",
        lambda room: (*(-amount for amount in room.spare), room.node),
        in_turns,
    ),
    Strategy(
        "pack",
        "as few nodes as possible: the others stay as they are",
        lambda room: (-room.slots, room.spare, room.node),
        one_after_another,
    ),
)

NAMES = tuple(strategy.name for strategy in STRATEGIES)
