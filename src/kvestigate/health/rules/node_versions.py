"""Nodes that do not go with the others: versions, clocks, and how much pods may use. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.requests import amounts
from kvestigate.render.human import age
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import add
from kvestigate.snapshot.objects import Node

Version = tuple[int, int]
_OLDER = 3
"""How many minor versions a kubelet may be older than the API server."""
_OLDER_BEFORE_1_28 = 2
_APART = 2
"""Minor versions between the nodes of one cluster that are more than an upgrade under way."""
_CLOCK = timedelta(minutes=5)
_LEASES = "kube-node-lease"
_LEAST_SHARE = 0.4
"""Of a node's capacity, what is left for pods."""


def _version(text: str) -> Version | None:
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?!\d)", text)
    return (int(found[1]), int(found[2])) if found else None


@rule(
    "kubelet-skew",
    "A kubelet's version does not go with the API server's.",
    listings.NODES,
    uses=[listings.SERVER_VERSION],
)
def skewed(cluster: Cluster) -> Iterator[Fault]:
    server = next((one.git_version for one in cluster.of(listings.SERVER_VERSION)), "")
    nodes = [(node, version) for node in cluster.of(listings.NODES) if (version := _of(node))]
    limit = _version(server)
    newest = max((own for _, own in nodes if limit is None or own <= limit), default=None)
    for node, version in nodes:
        evidence = _skew(version, limit, server, node)
        severity = Severity.WARNING
        if not evidence and newest and newest[1] - version[1] >= _APART:
            severity = Severity.INFO
            evidence = (
                f"The kubelet is {node.status.node_info.kubelet_version}, "
                f"{newest[1] - version[1]} minor versions older than the newest kubelet."
            )
        if evidence:
            yield Fault(
                severity=severity,
                subject=Subject("Node", node.metadata.name),
                evidence=evidence,
                why="Kubernetes does not support this: pods on the node may fail in ways that "
                "nobody has tested.",
                command="kubectl get nodes -o wide",
            )


def _of(node: Node) -> Version | None:
    return _version(node.status.node_info.kubelet_version)


def _skew(version: Version, server: Version | None, written: str, node: Node) -> str:
    """What Kubernetes' version skew policy does not allow; empty if it is allowed or unknown."""
    if server is None:
        return ""
    own = node.status.node_info.kubelet_version
    if version > server:
        return f"The kubelet ({own}) is newer than the API server ({written})."
    behind = server[1] - version[1] if server[0] == version[0] else 99
    most = _OLDER if version >= (1, 25) else _OLDER_BEFORE_1_28
    if behind > most:
        return (
            f"The kubelet ({own}) is {behind} minor versions older than the API server "
            f"({written}); Kubernetes supports at most {most}."
        )
    return ""


@rule("node-clock", "The clock of a node is wrong.", listings.LEASES, listings.NODES)
def wrong_clock(cluster: Cluster) -> Iterator[Fault]:
    """A kubelet writes its own time into its lease; the API server notes when that was written."""
    for node in cluster.of(listings.NODES):
        lease = cluster.find(listings.LEASES, node.metadata.name, _LEASES)
        if lease is None or lease.spec.renew_time is None:
            continue
        written = [entry.time for entry in lease.metadata.managed_fields if entry.time is not None]
        renewed = lease.spec.renew_time
        if renewed - cluster.now >= _CLOCK:
            off, direction = renewed - cluster.now, "ahead of"
        elif len(written) == 1 and written[0] - renewed >= _CLOCK:
            off, direction = written[0] - renewed, "behind"
        else:
            continue
        yield Fault(
            severity=Severity.WARNING,
            subject=Subject("Node", node.metadata.name),
            evidence=f"The clock of the node is {age(off.total_seconds())} {direction} the API "
            f"server's, by its lease: {renewed:%Y-%m-%d %H:%M:%S} UTC.",
            why="Certificates and tokens look expired or not valid yet, and logs and metrics have "
            "wrong times.",
            command=f"kubectl -n {_LEASES} get lease {node.metadata.name} -o yaml",
        )


@rule("node-reserved", "Pods may use little of a node's capacity.", listings.NODES)
def reserved(cluster: Cluster) -> Iterator[Fault]:
    for node in cluster.of(listings.NODES):
        have, left = amounts(node.status.capacity), amounts(node.status.allocatable)
        pages = sum(amount for name, amount in have.items() if name.startswith("hugepages-"))
        for name, unit in (("cpu", "CPU"), ("memory", "memory")):
            capacity = have.get(name, 0) - (pages if name == "memory" else 0)
            if capacity <= 0 or name not in left or left[name] >= capacity * _LEAST_SHARE:
                continue
            yield Fault(
                severity=Severity.WARNING,
                subject=Subject("Node", node.metadata.name),
                evidence=f"Pods may use {node.status.allocatable[name]} of "
                f"{node.status.capacity[name]} {unit} ({left[name] * 100 // capacity} %); the rest "
                "is reserved.",
                why="The kubelet's settings kubeReserved, systemReserved and evictionHard keep the "
                "rest from pods.",
                command=f"kvestigate describe node {node.metadata.name}",
                alike=name,
            )


@rule(
    "node-overcommitted",
    "The limits of a node's pods are far above what the node has.",
    listings.NODES,
    listings.PODS,
    strict=True,
)
def overcommitted(cluster: Cluster) -> Iterator[Fault]:
    if cluster.snapshot.namespace:
        return
    limits: dict[str, dict[str, int]] = {}
    for pod in cluster.pods:
        total = limits.setdefault(pod.spec.node_name, {})
        for container in pod.spec.containers:
            add(total, amounts(container.resources.limits))
    for node in cluster.of(listings.NODES):
        left = amounts(node.status.allocatable).get("memory", 0)
        wanted = limits.get(node.metadata.name, {}).get("memory", 0)
        if left and wanted > left * 1.5:
            yield Fault(
                severity=Severity.INFO,
                subject=Subject("Node", node.metadata.name),
                evidence=f"The memory limits of its pods add up to {wanted * 100 // left} % of "
                "its allocatable memory.",
                why="If the pods use what they may, the node runs out of memory and pods are "
                "OOM-killed or evicted.",
                command=f"kvestigate describe node {node.metadata.name}",
            )


RULES = (
    skewed,
    wrong_clock,
    reserved,
    overcommitted,
)
