"""What a finding is, and what finds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kvestigate.render.severity import Severity
from kvestigate.snapshot.snapshot import Snapshot
from kvestigate.snapshot.source import Source


@dataclass(frozen=True, slots=True)
class Subject:
    kind: str
    name: str
    namespace: str = ""
    container: str = ""
    """Of a pod, where the fault is that container's own."""

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
    """What was seen, with the figures."""
    why: str
    """Why it matters."""
    command: str
    """Shows more of it, or mends it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of fault. It is not looked for when what it needs could not be listed."""

    name: str
    summary: str
    needs: tuple[Source[Any], ...]
    check: Callable[[Snapshot], Iterable[Finding]]
