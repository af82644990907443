"""The interface to the controllers, schedulers and simulated nodes that work on planes.

The plane does not know them. Whoever assembles a server gives `Planes.workforce` one that has
some; `Idle` stands in where there is none.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from kvestigate import errors
from kvestigate.cluster.plane.store.plane import Plane

MOST_SECONDS = 366 * 86400.0
"""The longest step: a year, so that a mistyped number of seconds does not run for ever."""


class StepResult(msgspec.Struct, frozen=True):
    """The result of a step."""

    now: float
    """The plane's time after it, in Unix seconds."""
    revision: int
    """The plane's revision after it."""
    changes: int
    """The number of changes that were made during the step."""
    idle: bool
    """Whether all work is done: what is left only repeats (leases), or waits for far-off times."""


class Workforce(Protocol):
    """The controllers, schedulers and simulated nodes of a server."""

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
