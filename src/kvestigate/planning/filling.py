"""Ways to fill rooms that have enough slots together, in the order they are given. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.planning.model import Placement, Room


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
