"""The rules, and all that they find. A new rule is one line in its topic's `RULES`."""

from __future__ import annotations

from kvestigate.reports.findings import (
    certificates,
    deprecated,
    gpus,
    jobs,
    network,
    nodes,
    pods,
    storage,
    usage,
)
from kvestigate.reports.findings.model import Finding, Rule
from kvestigate.snapshot.snapshot import Snapshot

RULES: tuple[Rule, ...] = (
    *nodes.RULES,
    *pods.RULES,
    *jobs.RULES,
    *network.RULES,
    *storage.RULES,
    *certificates.RULES,
    *usage.RULES,
    *gpus.RULES,
    *deprecated.RULES,
)


def findings(snapshot: Snapshot) -> tuple[Finding, ...]:
    """What the rules find, the worst first, then in the order of the rules."""
    found = [
        finding for rule in RULES if snapshot.knows(*rule.needs) for finding in rule.check(snapshot)
    ]
    return tuple(sorted(found, key=lambda it: it.severity.rank))


def skipped(snapshot: Snapshot) -> tuple[str, ...]:
    """Rules that could not be checked, because something they need could not be listed."""
    return tuple(rule.name for rule in RULES if not snapshot.knows(*rule.needs))
