"""A task: a plane in some state, what is to be done about it, and how well that went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvestigate_client.guards import STANDARD, Guard
from kvestigate_client.gym.actions import Action
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import Score


@dataclass(frozen=True, slots=True)
class Task:
    name: str
    category: str
    """repair, scaling, security, cost or gpu"""
    instruction: str
    """What the agent is told."""
    objects: Sequence[Object]
    """What the plane starts with, beside what every plane has."""
    score: Score
    """From 0, where it starts, to 1, where it is done."""
    solution: Sequence[Action]
    """Actions that do it: a proof that it can be done."""
    limit: int = 20
    """Turns before the episode is cut off."""
    seconds: float = 30.0
    """Virtual time that passes with each turn."""
    scenario: str = ""
    """A scenario that comes before the objects."""
    guards: Sequence[Guard] = STANDARD
    """What has to stay as it was: as long as something is harmed, the score is 0."""

    def harm(self, start: Snapshot, now: Snapshot) -> str:
        """What has been harmed since the start; nothing if it is empty."""
        return next(filter(None, (guard(start, now) for guard in self.guards)), "")

    def template(self, seed: int) -> dict[str, Any]:
        """Of a Fleet whose members start where the task does."""
        made: dict[str, Any] = {"clock": "virtual", "seed": seed, "objects": list(self.objects)}
        if self.scenario:
            made["scenario"] = self.scenario
        return made
