"""A rule: a check for one kind of problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Profile
from kvestigate.render.severity import Severity
from kvestigate.snapshot.source import Source

Check = Callable[[Cluster], Iterable[Fault]]


@dataclass(frozen=True, slots=True)
class Rule:
    """It is skipped when one of `needs` could not be read."""

    name: str
    """`crash-loop`: what `-o sarif` and waivers call it."""
    summary: str
    needs: tuple[Source[Any], ...]
    check: Check
    uses: tuple[Source[Any], ...] = ()
    """What makes its answers better, and what it can do without."""
    profile: Profile = Profile.RELIABILITY
    strict: bool = False
    """Advice that a healthy workload need not follow: only asked for by its profile."""

    def faults(self, cluster: Cluster) -> Iterator[Fault]:
        breaks = self.profile is Profile.RELIABILITY and not self.strict
        for fault in self.check(cluster):
            explains = breaks and fault.severity is not Severity.INFO
            yield replace(fault, rule=self.name, explains=explains)


def rule(
    name: str,
    summary: str,
    *needs: Source[Any],
    uses: Sequence[Source[Any]] = (),
    profile: Profile = Profile.RELIABILITY,
    strict: bool = False,
) -> Callable[[Check], Rule]:
    """Makes a rule of the function that checks it."""
    return lambda check: Rule(name, summary, needs, check, tuple(uses), profile, strict)
