"""Whether an audit passes: for CI, which wants one answer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvestigate.health.audit import Audit, unaccepted
from kvestigate.health.registry import RULES
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity, at_least, tally
from kvestigate.snapshot.gaps import Cause


def objections(audit: Audit, limit: str, *, allow_gaps: bool) -> Sequence[str]:
    """Why the audit fails at this severity, a sentence each; none if it passes.

    What somebody has accepted does not count. A rule that could not run because something may not
    be read might have found anything; a cluster that does not serve a type has nothing to check.
    """
    reasons = []
    severities = [finding.severity for finding in unaccepted(audit)]
    if at_least(severities, limit):
        counting = [severity for severity in severities if severity.rank <= Severity(limit).rank]
        reasons.append(f"findings: {tally(counting)}")
    return reasons if allow_gaps else [*reasons, *_unread(audit)]


def _unread(audit: Audit) -> Iterator[str]:
    """The rules that may have missed something because of what was not read."""
    unread = [gap for gap in audit.gaps if gap.cause not in (Cause.ABSENT, Cause.TRUNCATED)]
    names = ", ".join(dict.fromkeys(gap.resource for gap in unread))
    sources = {(gap.verb, gap.resource) for gap in unread}
    stopped = [
        rule
        for rule in RULES
        if rule.name in audit.skipped
        and any((source.verb, source.name) in sources for source in rule.needs)
    ]
    if stopped:
        yield f"{counted(len(stopped), 'rule')} could not run: {names} not read"
    if audit.incomplete:
        rules = counted(len(audit.incomplete), "rule")
        yield f"{rules} ran without all objects: {names} not read"
