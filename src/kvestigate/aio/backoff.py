"""Growing, jittered pauses between attempts."""

from __future__ import annotations

import random
from collections.abc import Callable

from msgspec import Struct


class Backoff(Struct):
    """`next()` is the pause before the next attempt, twice the last; `reset()` after a success.

    Jitter spreads the clients of a server that has just come back, so that they do not
    all return in the same moment.
    """

    initial: float = 0.5
    cap: float = 30.0
    jitter: float = 0.5
    """A pause of `d` becomes a random one from `d` to `d * (1 + jitter)`."""
    random: Callable[[], float] = random.random
    attempts: int = 0

    def next(self) -> float:
        # The exponent is bounded too: a float overflows long before a patient caller gives up.
        pause = min(self.cap, self.initial * 2.0 ** min(self.attempts, 64))
        self.attempts += 1
        return pause * (1 + self.jitter * self.random())

    def reset(self) -> None:
        self.attempts = 0
