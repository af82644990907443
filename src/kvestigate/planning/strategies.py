"""The strategies. A new one is one entry in `STRATEGIES`. Pure.

Replicas are equal, so a placement is a number per node, and every strategy places all replicas if
they fit.
"""

from __future__ import annotations

from kvestigate.planning.filling import in_turns, one_after_another
from kvestigate.planning.model import Strategy

STRATEGIES: tuple[Strategy, ...] = (
    Strategy(
        "bestfit",
        "fills the nodes with the least free first; large free blocks stay free",
        lambda room: (room.spare, room.node),
        one_after_another,
    ),
    Strategy(
        "spread",
        "uses as many nodes as possible; losing a node costs least",
        lambda room: (*(-amount for amount in room.spare), room.node),
        in_turns,
        wide=True,
    ),
    Strategy(
        "pack",
        "uses as few nodes as possible; the others stay unchanged",
        lambda room: (-room.slots, room.spare, room.node),
        one_after_another,
    ),
)

NAMES = tuple(strategy.name for strategy in STRATEGIES)
