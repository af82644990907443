"""Whether an audit passes: for CI, which wants one answer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.health.audit import Audit, unaccepted
from kvestigate.render.human import counted
from kvestigate.render.severity import Severity, at_least, tally
from kvestigate.snapshot.model import Cause


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
    unread = [gap for gap in audit.gaps if gap.cause is not Cause.ABSENT]
    if audit.skipped and unread and not allow_gaps:
        names = ", ".join(dict.fromkeys(gap.resource for gap in unread))
        reasons.append(f"{counted(len(audit.skipped), 'rule')} could not run: {names} not read")
    return reasons
