"""The types of the audit's result: a finding, its subject, and the rule that reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kvestigate.render.severity import Severity
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.source import Source


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


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    """`crash-loop`: what `-o sarif` groups by."""
    severity: Severity
    subject: Subject
    evidence: str
    """What was observed, numbers first."""
    why: str
    """Why it matters."""
    command: str
    """The command that shows more, or that fixes the problem."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A check for one kind of problem. It is skipped when one of `needs` could not be read."""

    name: str
    summary: str
    needs: tuple[Source[Any], ...]
    check: Callable[[Snapshot], Iterable[Finding]]
