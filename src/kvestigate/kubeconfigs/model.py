"""What an analysis says."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from kvestigate.render.severity import Severity


@dataclass(frozen=True, slots=True)
class Finding:
    rule: str
    """`dangling-name`"""
    severity: Severity
    subject: str
    """`user "admin"`, or the file."""
    where: str
    """`config:12:5`, or the file."""
    evidence: str
    why: str
    command: str = ""
    """Mends it, or shows more; empty where only an editor helps."""


@dataclass(frozen=True, slots=True)
class ContextFacts:
    """A context and what it leads to."""

    name: str
    current: bool
    cluster: str
    server: str
    """Empty when there is no such cluster."""
    user: str
    authentication: str
    """`client certificate`, `token`, `plugin aws`, `nothing`"""
    namespace: str
    expires: str
    """When the first of certificate and token ends: `2027-01-01 00:00 UTC`; empty: never known."""


@dataclass(frozen=True, slots=True)
class Analysis:
    files: tuple[str, ...]
    current_context: str
    contexts: tuple[ContextFacts, ...]
    findings: tuple[Finding, ...]
    """The worst first."""


def kubectl(file: Path | str, *words: str) -> str:
    """The command that changes `file`."""
    return shlex.join(("kubectl", "--kubeconfig", str(file), "config", *words))
