"""What is wrong with kubeconfigs: the one list of rules. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from kvestigate.kubeconfigs import exposure, logins, naming
from kvestigate.kubeconfigs.look import Look
from kvestigate.kubeconfigs.model import Finding
from kvestigate.render.severity import Severity

Rule = Callable[[Look, datetime], Iterable[Finding]]
"""What was seen and the time now -> what is wrong."""


def findings(look: Look, now: datetime) -> tuple[Finding, ...]:
    """Of all rules, the worst first."""
    every_finding = [finding for rule in RULES for finding in rule(look, now)]
    return tuple(sorted(every_finding, key=lambda finding: finding.severity.rank))


def unreadable(look: Look, now: datetime) -> Iterator[Finding]:
    for problem in (*look.entries.problems, *look.unusable):
        where, evidence = _split(problem.error.message, problem.where)
        yield Finding(
            "unusable",
            Severity.CRITICAL,
            problem.subject,
            where,
            evidence.removeprefix(f"{problem.subject}: "),
            problem.error.hint or "kubectl and every other client refuse the entry",
        )


def _split(message: str, where: str) -> tuple[str, str]:
    """An error begins with its place, which is finer than that of the entry."""
    file = where.partition(":")[0]
    place, colon, evidence = message.partition(": ")
    return (place, evidence) if colon and place.startswith(file) else (where, message)


RULES: tuple[Rule, ...] = (
    unreadable,
    naming.repeated,
    naming.dangling_current,
    naming.dangling,
    logins.expiring,
    logins.mismatched,
    logins.plugins,
    logins.providers,
    exposure.permissions,
    exposure.insecure,
    logins.passwords,
    naming.repeated_keys,
    naming.unknown_fields,
    naming.unused,
)
