"""Where the commands of findings go: to the cluster that was looked at. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from kvestigate.reports.audit import Audit

_PROGRAMS = ("kvestigate", "kubectl")


def aimed(audit: Audit, flags: Sequence[str]) -> Audit:
    """The audit with `flags` in its commands: without them they would go to the current context."""
    if not flags:
        return audit
    findings = (
        replace(finding, command=_aimed(finding.command, shlex.join(flags)))
        for finding in audit.findings
    )
    return replace(audit, findings=tuple(findings))


def _aimed(command: str, flags: str) -> str:
    program, _, rest = command.partition(" ")
    return f"{program} {flags} {rest}" if program in _PROGRAMS else command
