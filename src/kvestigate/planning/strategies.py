"""The strategies. A new one is one line in `STRATEGIES`. Pure.

Replicas are alike, so a placement is a count per node and every strategy is exact: it places
all replicas whenever they fit.
"""

from __future__ import annotations

from kvestigate.planning.filling import in_turns, one_after_another
from kvestigate.planning.model import Strategy

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
        wide=True,
    ),
    Strategy(
        "pack",
        "as few nodes as possible: the others stay as they are",
        lambda room: (-room.slots, room.spare, room.node),
        one_after_another,
    ),
)

NAMES = tuple(strategy.name for strategy in STRATEGIES)
