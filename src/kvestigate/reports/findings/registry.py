"""All rules, and running them. A new rule is one entry in the `RULES` of its topic."""

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
from kvestigate.snapshot.model import Snapshot

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
    """The findings of all rules, the most severe first, then in the order of the rules."""
    checked = [rule for rule in RULES if snapshot.knows(*rule.needs)]
    unsorted = (finding for rule in checked for finding in rule.findings(snapshot))
    return tuple(sorted(unsorted, key=lambda finding: finding.severity.rank))


def skipped(snapshot: Snapshot) -> tuple[str, ...]:
    """The names of rules that were not checked because a source they need was not read."""
    return tuple(rule.name for rule in RULES if not snapshot.knows(*rule.needs))
