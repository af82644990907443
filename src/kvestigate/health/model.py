"""The types of a diagnosis: a fault of one object, and the finding that faults of one cause are."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime

from kvestigate.render.severity import Severity


class Profile(enum.Enum):
    """What a rule is about; `audit --profile` chooses."""

    RELIABILITY = "reliability"
    SECURITY = "security"
    COST = "cost"


@dataclass(frozen=True, slots=True)
class Subject:
    kind: str
    name: str
    namespace: str = ""
    container: str = ""
    """The container of the pod; empty if the finding is about the whole pod."""

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"

    @property
    def whole(self) -> Subject:
        """The object, without the container."""
        return replace(self, container="") if self.container else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a rule says about one object."""

    rule: str = ""
    severity: Severity
    subject: Subject
    evidence: str
    """What was observed and why it is so: names the cause, quotes the condition or the event."""
    why: str
    """Why it matters."""
    command: str
    """The command that shows more, or that fixes the problem."""
    since: datetime | None = None
    causes: tuple[Subject, ...] = ()
    """Objects whose own faults explain this one. If one of them has a fault, this is its effect."""
    only_as_effect: bool = False
    """Normal for a while by itself: reported only if one of `causes` has a fault."""
    explains: bool = True
    """Whether it can be the cause of another fault: advice cannot."""
    alike: str = ""
    """Pods of one workload with the same rule and the same text here are one finding."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A fault that follows from the one that a finding is about."""

    rule: str
    subject: Subject
    evidence: str


@dataclass(frozen=True, slots=True)
class Change:
    """The last write to an object that was not about its metadata or status."""

    subject: Subject
    """The object of the finding; if it does not exist, one that needs it."""
    by: str
    """The program that wrote, as it calls itself: `kubectl-edit`."""
    at: datetime

    def __str__(self) -> str:
        return f"{self.subject} was last changed by {self.by} at {self.at:%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause, with everything that follows from it."""

    rule: str
    severity: Severity
    """The worst of the fault and its effects."""
    subject: Subject
    """The object with the fault: of pods that a workload owns, the workload."""
    evidence: str
    why: str
    command: str
    since: datetime | None = None
    objects: tuple[Subject, ...] = ()
    """The pods that have the fault, if the subject is their workload."""
    effects: tuple[Effect, ...] = ()
    changed: Change | None = None
    """The last change of the object since its creation; None if there is none or it is unknown."""

    @property
    def key(self) -> str:
        """What stays the same while the finding does: its rule and its object."""
        return key_of(self.rule, self.subject)


def key_of(rule: str, subject: Subject) -> str:
    parts = (subject.namespace, subject.kind, subject.name, subject.container)
    return f"{rule} {'/'.join(part for part in parts if part)}"
