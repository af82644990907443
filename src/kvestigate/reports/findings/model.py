"""The types of the audit's result: a finding, its subject, and the rule that reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    rule: str = ""
    """`crash-loop`: what `-o sarif` groups by. The name of the rule that yields the finding."""
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

    def findings(self, snapshot: Snapshot) -> Iterator[Finding]:
        for finding in self.check(snapshot):
            yield replace(finding, rule=self.name)


def rule(
    name: str, summary: str, *needs: Source[Any]
) -> Callable[[Callable[[Snapshot], Iterable[Finding]]], Rule]:
    """Makes a rule of the function that checks it."""
    return lambda check: Rule(name, summary, needs, check)
