"""Nodes that are not ready or under pressure. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready

_PRESSURES = {
    "MemoryPressure": "The node is low on memory: the kubelet evicts pods.",
    "DiskPressure": "The node's disk is nearly full: the kubelet evicts pods and deletes images.",
    "PIDPressure": "The node is low on process IDs: the kubelet evicts pods.",
    "NetworkUnavailable": "The node's network is not configured: its pods have no connections.",
}


@rule("node-not-ready", "A node is not ready.", listings.NODES)
def not_ready(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        if is_ready(node):
            continue
        ready = next(
            (condition for condition in node.status.conditions if condition.type == "Ready"), None
        )
        if ready is None:
            evidence = "The kubelet has never reported a Ready condition."
        else:
            changed = ready.last_transition_time
            since = f" since {changed:%Y-%m-%d %H:%M} UTC" if changed else ""
            evidence = f"Not ready{since}: {ready.message}"
        yield Fault(
            severity=Severity.CRITICAL,
            subject=Subject("Node", node.metadata.name),
            evidence=evidence,
            why="No new pods are scheduled on the node. By default its pods are evicted after "
            "5 minutes.",
            command=f"kvestigate describe node {node.metadata.name}",
        )


@rule("node-pressure", "A node has pressure or no network.", listings.NODES)
def under_pressure(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        for condition in node.status.conditions:
            if condition.type in _PRESSURES and condition.status == "True":
                yield Fault(
                    severity=Severity.CRITICAL,
                    subject=Subject("Node", node.metadata.name),
                    evidence=f"{condition.type}: {condition.message or condition.reason}",
                    why=_PRESSURES[condition.type],
                    command=f"kvestigate describe node {node.metadata.name}",
                )


RULES = (
    not_ready,
    under_pressure,
)
