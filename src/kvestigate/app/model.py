"""What bringing an App up or down does, step by step. Pure."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kvestigate.app.spec import Target
from kvestigate.manifests.model import Change


class Action(enum.StrEnum):
    """What is done to one thing, or would be."""

    CREATE = "create"
    CHANGE = "change"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    SYNC = "sync"
    """Files are made equal to those here."""
    START = "start"
    STOP = "stop"
    CONFLICT = "conflict"
    """Somebody else's fields, or somebody else's workspace."""
    FAIL = "fail"
    LEAVE = "leave"
    """It is going, and not gone yet."""
    SKIP = "skip"
    """Not tried, since something before it failed."""

    @property
    def good(self) -> bool:
        return self not in (Action.CONFLICT, Action.FAIL, Action.LEAVE, Action.SKIP)


@dataclass(frozen=True, slots=True)
class Step:
    action: Action
    subject: str
    """`Deployment web`, `workspace trainer-01 on gpu-node-7`"""
    reason: str = ""
    changes: tuple[Change, ...] = ()
    script: tuple[str, ...] = ()
    """What is run on a host."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What would be done, and the way to do it."""

    steps: tuple[Step, ...]
    carry_out: Callable[[], Awaitable[tuple[Step, ...]]]
    """Says what came of the steps. Only for steps that are all good."""


@dataclass(frozen=True, slots=True)
class AppOutcome:
    """All steps of an `up` or `down`, in their order."""

    namespace: str
    name: str
    target: Target
    """Never `auto`."""
    reasons: tuple[str, ...]
    """Why this target."""
    caveats: tuple[str, ...]
    spec_hash: str
    applied: bool
    """False: this is what would happen."""
    steps: tuple[Step, ...]

    @property
    def failed(self) -> bool:
        return not all(step.action.good for step in self.steps)

    @property
    def changes_anything(self) -> bool:
        return any(step.action is not Action.UNCHANGED for step in self.steps)

    def count(self, action: Action) -> int:
        return sum(step.action is action for step in self.steps)
