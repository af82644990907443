"""Nodes in trouble, and budgets that hold them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.render.severity import Severity
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready
from kvestigate.snapshot.snapshot import Snapshot

_PRESSURES = {
    "MemoryPressure": "it is short of memory and evicts pods",
    "DiskPressure": "its disk is nearly full: it evicts pods and deletes images",
    "PIDPressure": "it is short of process ids and evicts pods",
    "NetworkUnavailable": "its network is not set up, so pods there reach nothing",
}


def not_ready(snapshot: Snapshot) -> Iterator[Finding]:
    for node in snapshot.of(listings.NODES):
        if is_ready(node):
            continue
        said = next((it for it in node.status.conditions if it.type == "Ready"), None)
        since = (
            f" since {said.last_transition_time:%Y-%m-%d %H:%M} UTC"
            if (said is not None and said.last_transition_time)
            else ""
        )
        yield Finding(
            rule="node-not-ready",
            severity=Severity.CRITICAL,
            subject=Subject("Node", node.metadata.name),
            evidence=f"not ready{since}: {said.message}" if said else "it never said it was ready",
            why="no pods are placed there, and those it runs are replaced after five minutes",
            command=f"kvestigate describe node {node.metadata.name}",
        )


def under_pressure(snapshot: Snapshot) -> Iterator[Finding]:
    for node in snapshot.of(listings.NODES):
        for condition in node.status.conditions:
            if condition.type in _PRESSURES and condition.status == "True":
                yield Finding(
                    rule="node-pressure",
                    severity=Severity.CRITICAL,
                    subject=Subject("Node", node.metadata.name),
                    evidence=f"{condition.type}: {condition.message or condition.reason}",
                    why=_PRESSURES[condition.type],
                    command=f"kvestigate describe node {node.metadata.name}",
                )


def budgets_that_block(snapshot: Snapshot) -> Iterator[Finding]:
    """Budgets that allow nothing even while every pod is healthy."""
    for budget in snapshot.of(listings.BUDGETS):
        status = budget.status
        if (
            status.expected_pods
            and not status.disruptions_allowed
            and status.current_healthy >= status.expected_pods
        ):
            name, namespace = budget.metadata.name, budget.metadata.namespace
            yield Finding(
                rule="budget-blocks-drain",
                severity=Severity.WARNING,
                subject=Subject("PodDisruptionBudget", name, namespace),
                evidence=f"all {status.expected_pods} pods are healthy, {status.desired_healthy} "
                "must be, so none may be evicted",
                why="every drain of a node with one of these pods hangs until somebody gives in",
                command=f"kubectl -n {namespace} describe pdb {name}",
            )


RULES = (
    Rule("node-not-ready", "A node does not work.", (listings.NODES,), not_ready),
    Rule("node-pressure", "A node is short of something.", (listings.NODES,), under_pressure),
    Rule(
        "budget-blocks-drain",
        "A disruption budget lets no pod go.",
        (listings.BUDGETS,),
        budgets_that_block,
    ),
)
