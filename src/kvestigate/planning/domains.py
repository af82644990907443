"""How many replicas each topology domain takes. Pure.

The scheduler places one pod at a time and looks at the emptiest domain each time. Filling the
lowest domain first keeps that minimum as high as it can be, so whatever this cannot place, no
order can.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from kvestigate.planning.model import Domains


def allot(domains: Domains, slots: Mapping[str, int], replicas: int) -> dict[str, int]:
    """Domain -> replicas; together fewer than asked for where no more fit."""
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
