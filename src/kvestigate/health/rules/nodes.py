"""Nodes that are not ready, under pressure, closed or full. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.requests import amounts
from kvestigate.kube.views.core import NodeCondition, Taint
from kvestigate.render.human import age, counted, since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import requested
from kvestigate.snapshot.objects import Node

_PRESSURES = {
    "MemoryPressure": "The node is low on memory: the kubelet evicts pods.",
    "DiskPressure": "The node's disk is nearly full: the kubelet evicts pods and deletes images.",
    "PIDPressure": "The node is low on process IDs: the kubelet evicts pods.",
    "NetworkUnavailable": "The node's network is not configured: its pods have no connections.",
}
_BAD_WORDS = (
    "Pressure", "Deadlock", "Readonly", "ReadOnly", "Corrupt", "Frequent", "Problem", "Error",
    "Fault", "Unhealthy", "Failed", "Failure", "Unavailable", "Shutdown", "Hung", "Xid",
)  # fmt: skip
"""Conditions of the node problem detector and its like that are bad when they are True."""
_LEASES = "kube-node-lease"
_SILENT = timedelta(minutes=5)
"""A kubelet renews its lease every 10 seconds."""
_JOINING = timedelta(minutes=2)
"""How long a new node may take to report for the first time."""
_INITIALIZING = timedelta(minutes=1)
_OWN = "node.kubernetes.io/"
"""Taints that Kubernetes sets and removes itself."""
_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_EVENTS = {
    "SystemOOM": "The node ran out of memory, and the kernel killed processes.",
    "FreeDiskSpaceFailed": "The kubelet cannot free disk space: the disk will run full.",
    "ImageGCFailed": "The kubelet cannot delete unused images: the disk may run full.",
    "ContainerGCFailed": "The kubelet cannot delete dead containers.",
    "EvictionThresholdMet": "The kubelet evicts pods to get resources back.",
    "CIDRNotAvailable": "The node gets no addresses for pods.",
    "KubeletSetupFailed": "The kubelet does not start.",
    "KernelDeadlock": "Processes on the node hang.",
    "OOMKilling": "The kernel killed processes for want of memory.",
}
_RECENT = timedelta(minutes=30)


def _subject(node: Node) -> Subject:
    return Subject("Node", node.metadata.name)


def _describe(node: Node) -> str:
    return f"kvestigate describe node {node.metadata.name}"


@rule("node-not-ready", "A node is not ready.", listings.NODES, uses=[listings.LEASES])
def not_ready(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        ready = condition(node.status.conditions, "Ready")
        if ready is not None and ready.status == "True":
            evidence, since = _silence(cluster, node)
        elif ready is None:
            born = node.metadata.creation_timestamp
            joining = born is not None and not cluster.settled(born, _JOINING)
            evidence = "" if joining else "The kubelet has never reported a Ready condition."
            since = born
        else:
            since = ready.last_transition_time
            evidence = _unready(cluster, node, ready)
        if evidence:
            yield Fault(
                severity=Severity.CRITICAL,
                subject=_subject(node),
                evidence=evidence,
                why="No new pods are scheduled on the node. By default its pods are evicted after "
                "5 minutes.",
                command=_describe(node),
                since=since,
            )


def _unready(cluster: Cluster, node: Node, ready: NodeCondition) -> str:
    words = ": ".join(part for part in (ready.reason, ready.message) if part)
    when = since_when(ready.last_transition_time)
    if ready.status == "Unknown":
        renewed = _renewed(cluster, node)
        heard = renewed or ready.last_heartbeat_time
        last = f"; last heard of at {heard:%Y-%m-%d %H:%M:%S} UTC" if heard else ""
        return f"The kubelet does not report{when}{last}: {words}"
    others = "".join(
        f"; {one.type}: {one.message or one.reason}"
        for one in node.status.conditions
        if one.type in _PRESSURES and one.status == "True"
    )
    return f"Not ready{when}: {words}{others}"


def _renewed(cluster: Cluster, node: Node) -> datetime | None:
    lease = cluster.find(listings.LEASES, node.metadata.name, _LEASES)
    return lease.spec.renew_time if lease is not None else None


def _silence(cluster: Cluster, node: Node) -> tuple[str, datetime | None]:
    """Of a node that counts as ready, because nothing looks after the leases any more.

    Leases are compared with the newest one: the clock of this machine may be wrong.
    """
    renewed = _renewed(cluster, node)
    newest = cluster.newest_renewal
    if renewed is None or newest is None or newest - renewed < _SILENT:
        return "", None
    return (
        f"The kubelet has not renewed its lease{since_when(renewed)}. The node still counts as "
        "ready: the node controller (kube-controller-manager) does not work either.",
        renewed,
    )


@rule("node-pressure", "A node has pressure, no network or a reported problem.", listings.NODES)
def under_pressure(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        for one in node.status.conditions:
            if _is_bad(one):
                when = since_when(one.last_transition_time)
                yield Fault(
                    severity=Severity.CRITICAL,
                    subject=_subject(node),
                    evidence=f"{one.type}{when}: {one.message or one.reason}",
                    why=_PRESSURES.get(one.type, "The node reports a problem of its host."),
                    command=_describe(node),
                    since=one.last_transition_time,
                    alike=one.type,
                )


def _is_bad(one: NodeCondition) -> bool:
    """By the name: the agents of clouds write conditions of both polarities."""
    if one.type == "Ready":
        return False
    if one.type.endswith("Ready"):
        return one.status == "False"
    return one.status == "True" and any(word in one.type for word in _BAD_WORDS)


@rule("node-cordoned", "A node is cordoned.", listings.NODES, uses=[listings.PODS])
def cordoned(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        if not node.spec.unschedulable:
            continue
        by, since = _cordoned_by(node)
        lasted = f" for {age((cluster.now - since).total_seconds())}" if since else ""
        yield Fault(
            severity=Severity.WARNING,
            subject=_subject(node),
            evidence=f"Cordoned{by}{since_when(since)}{lasted and f' ({lasted.strip()})'}: "
            "spec.unschedulable is true.",
            why="No new pods are scheduled on the node until it is uncordoned.",
            command=f"kvestigate node uncordon {node.metadata.name}",
            since=since,
        )


def _cordoned_by(node: Node) -> tuple[str, datetime | None]:
    for writer in node.metadata.managed_fields:
        if writer.fields.spec.unschedulable is not None:
            ours = writer.manager.startswith("kvestigate")
            doing = " (a workspace, `optimize apply` or `node drain`)" if ours else ""
            return f" by {writer.manager or 'an unknown client'}{doing}", writer.time
    return "", None


@rule(
    "node-taint",
    "A taint keeps every workload off a node.",
    listings.NODES,
    listings.PODS,
    uses=[listings.DEPLOYMENTS, listings.STATEFUL_SETS, listings.JOBS, listings.CRON_JOBS],
)
def taints(cluster: Cluster) -> Iterator[Fault]:
    tolerated: set[tuple[str, str]] | None = None
    for node in cluster.of(listings.NODES):
        for taint in node.spec.taints:
            problem = _own_taint(cluster, node, taint)
            if not problem and taint.effect == "NoExecute" and not taint.key.startswith(_OWN):
                if tolerated is None:
                    tolerated = _tolerated(cluster)
                if not {(taint.key, taint.value), (taint.key, "*")} & tolerated:
                    problem = "No workload tolerates this taint: it evicts every pod."
            if problem:
                yield Fault(
                    severity=Severity.WARNING,
                    subject=_subject(node),
                    evidence=f"Taint {_text(taint)}{since_when(taint.time_added)}. {problem}",
                    why="The node runs no workloads while it has the taint.",
                    command=f"kubectl taint node {node.metadata.name} {taint.key}:{taint.effect}- "
                    "--dry-run=server",
                    since=taint.time_added,
                    alike=taint.key,
                )


def _own_taint(cluster: Cluster, node: Node, taint: Taint) -> str:
    """What is wrong with a taint that another program should have removed."""
    ready = condition(node.status.conditions, "Ready")
    if taint.key == _UNINITIALIZED and cluster.settled(
        node.metadata.creation_timestamp, _INITIALIZING
    ):
        return "The cloud controller manager has not initialized the node."
    if taint.key == _OUT_OF_SERVICE and ready is not None and ready.status == "True":
        return "The node is ready again; somebody set this taint by hand and did not remove it."
    return ""


def _text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _tolerated(cluster: Cluster) -> set[tuple[str, str]]:
    """(key, value or `*`) of taints that a workload tolerates by name; node agents do not count."""
    return {
        (toleration.key, "*" if toleration.operator == "Exists" else toleration.value)
        for subject, spec in cluster.templates()
        if subject.kind != "DaemonSet"
        for toleration in spec.tolerations
        if toleration.key and toleration.effect in ("", "NoExecute")
    }


@rule("node-event", "The kubelet warns of a problem of its node.", listings.NODES, listings.EVENTS)
def warned(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        for reason, why in _EVENTS.items():
            events = cluster.events(_subject(node), reason)
            if events and events[0].last_seen and not _is_old(cluster, events[0].last_seen):
                event = events[0]
                many = f" ({event.count} times)" if event.count > 1 else ""
                yield Fault(
                    severity=Severity.WARNING,
                    subject=_subject(node),
                    evidence=f"{reason}: {event.message}{many}",
                    why=why,
                    command=f"kubectl get events -A --field-selector "
                    f"involvedObject.kind=Node,involvedObject.name={node.metadata.name}",
                    since=event.first_timestamp or event.last_seen,
                    alike=reason,
                )


def _is_old(cluster: Cluster, moment: datetime) -> bool:
    return cluster.settled(moment, _RECENT)


@rule("node-full", "A node runs as many pods as it may.", listings.NODES, listings.PODS)
def full(cluster: Cluster) -> Iterator[Fault]:
    if cluster.snapshot.namespace:
        return
    on_node: Mapping[str, Mapping[str, int]] = cluster.snapshot.derived(requested)
    for node in cluster.of(listings.NODES):
        most = amounts(node.status.allocatable).get("pods", 0)
        pods = on_node.get(node.metadata.name, {}).get("pods", 0)
        if most and pods >= most:
            yield Fault(
                severity=Severity.WARNING,
                subject=_subject(node),
                evidence=f"The node runs {pods} of at most {counted(most, 'pod')}.",
                why="No more pods are scheduled on the node, whatever CPU and memory it has free.",
                command="kubectl get pods -A -o wide --field-selector "
                f"spec.nodeName={node.metadata.name}",
            )


RULES = (
    not_ready,
    under_pressure,
    cordoned,
    taints,
    warned,
    full,
)
