"""What the plane asks of those who work on planes: controllers, schedulers, simulated nodes.

The plane does not know them. Whoever assembles a server gives `Planes.workforce` one that has
some; `Idle` stands in where there is none.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from kvestigate import errors
from kvestigate.cluster.plane.store.plane import Plane

MOST_SECONDS = 366 * 86400.0
"""One step is no longer than a year, so that a slip of the finger ends."""


class StepResult(msgspec.Struct, frozen=True):
    """What came of a step."""

    now: float
    """The plane's time after it, in Unix seconds."""
    revision: int
    """The plane's revision after it."""
    changes: int
    """How many revisions that was."""
    idle: bool
    """Whether all work is done: what is left only repeats (leases), or waits for far-off times."""


class Workforce(Protocol):
    """Who works on the planes of a server."""

    async def step(self, plane: Plane, *, seconds: float | None = None) -> StepResult:
        """Let a plane's own time pass: exactly `seconds`, or None: until nothing is left to do.

        For planes with a virtual clock only: BadRequest for others, and for a length that is
        negative or beyond MOST_SECONDS. Steps of one plane happen one after another.
        """

    def adopt(self, plane: Plane) -> None:
        """A plane came to be with work in it: it was forked, restored or seeded."""

    def dismiss(self, name: str) -> None:
        """A plane is deleted, or its state replaced: forget what was known of it."""


class Idle:
    """Nobody works on any plane."""

    async def step(self, plane: Plane, *, seconds: float | None = None) -> StepResult:
        raise errors.BadRequest(f'plane "{plane.name}" cannot be stepped: nobody works on it here')

    def adopt(self, plane: Plane) -> None:
        pass

    def dismiss(self, name: str) -> None:
        pass
