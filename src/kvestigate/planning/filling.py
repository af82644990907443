"""Distributing replicas over nodes and over topology domains. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from kvestigate.planning.model import Domains, Placement, Room


def one_after_another(rooms: Sequence[Room], replicas: int) -> Placement:
    """Fill each node, in the given order, before the next."""
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
    """One replica on each node with room, then a second one, and so on."""
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


def allot(domains: Domains, slots: Mapping[str, int], replicas: int) -> dict[str, int]:
    """Domain -> replicas; in sum fewer than `replicas` if no more fit.

    The scheduler places one pod at a time and compares with the emptiest domain each time. Filling
    the emptiest domain first keeps that minimum as high as possible, so this places as many
    replicas as any order can.
    """
    if domains.together:
        roomiest = max(domains.present, key=lambda name: slots.get(name, 0), default="")
        return {roomiest: min(slots.get(roomiest, 0), replicas)}
    caps = {
        name: min(slots.get(name, 0), replicas if domains.each is None else domains.each)
        for name in domains.present
    }
    taken = dict.fromkeys(caps, 0)
    lowest_full = min(
        (domains.present[name] for name, cap in caps.items() if not cap), default=None
    )
    levels = [(domains.present[name], name) for name, cap in caps.items() if cap]
    heapq.heapify(levels)
    for _ in range(replicas):
        if not levels:
            break
        level, name = levels[0]
        if domains.skew is not None:
            lowest = level if lowest_full is None else min(level, lowest_full)
            if level + 1 - (0 if domains.from_zero else lowest) > domains.skew:
                break
        taken[name] += 1
        if taken[name] < caps[name]:
            heapq.heapreplace(levels, (level + 1, name))
        else:
            heapq.heappop(levels)
            lowest_full = level + 1 if lowest_full is None else min(lowest_full, level + 1)
    return taken
