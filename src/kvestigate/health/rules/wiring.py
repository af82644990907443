"""Workloads at odds with what is around them: Services, nodes, other workloads, owners. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvestigate.health.cluster import Cluster, Maker, as_selector, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.network import Service
from kvestigate.render.human import listed
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import PodSpec
from kvestigate.snapshot.source import Listing
from kvestigate.snapshot.workloads import DaemonSet, StatefulSet

_OWNERS: dict[str, Listing[Any]] = {
    "Deployment": listings.DEPLOYMENTS,
    "ReplicaSet": listings.REPLICA_SETS,
    "ReplicationController": listings.REPLICATION_CONTROLLERS,
    "StatefulSet": listings.STATEFUL_SETS,
    "DaemonSet": listings.DAEMON_SETS,
    "Job": listings.JOBS,
    "CronJob": listings.CRON_JOBS,
}
_SELECTING: dict[str, Listing[Any]] = {
    kind: _OWNERS[kind] for kind in ("Deployment", "StatefulSet", "DaemonSet")
}
_KEEPS_DAEMONS = ("NoSchedule", "NoExecute")
_OF_THE_CONTROLLER = "node.kubernetes.io/"
"""Taints that the DaemonSet controller lets its pods tolerate."""


@rule(
    "statefulset-service",
    "The Service of a StatefulSet is missing or does not give its pods names.",
    listings.STATEFUL_SETS,
    listings.SERVICES,
)
def governing_services(cluster: Cluster) -> Iterator[Fault]:
    for stateful in cluster.of(listings.STATEFUL_SETS):
        meta, name = stateful.metadata, stateful.spec.service_name
        if not name or not stateful.spec.replicas or meta.deletion_timestamp is not None:
            continue
        problem = ""
        service = cluster.find(listings.SERVICES, name, meta.namespace)
        if service is not None:
            problem = _naming_problem(service, stateful)
        elif cluster.lacks(listings.SERVICES, name, meta.namespace):
            problem = "does not exist"
        if problem:
            yield Fault(
                severity=Severity.WARNING,
                subject=subject_of("StatefulSet", meta),
                evidence=f"Service {meta.namespace}/{name} (spec.serviceName) {problem}.",
                why=f"The pods have no DNS names such as {meta.name}-0.{name}: members of the "
                "StatefulSet cannot find each other.",
                command=f"kubectl -n {meta.namespace} get services",
            )


def _naming_problem(service: Service, stateful: StatefulSet) -> str:
    spec, labels = service.spec, stateful.spec.template.metadata.labels
    if spec.type == "ExternalName":
        return "is of type ExternalName, not headless"
    if spec.cluster_ip and spec.cluster_ip != "None":
        return f"is not headless (clusterIP is {spec.cluster_ip}, not None)"
    if spec.selector and not spec.selector.items() <= labels.items():
        return f"selects {_labels(spec.selector)}, but the pods have {_labels(labels)}"
    return ""


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


@rule("daemonset-no-node", "A DaemonSet matches no node.", listings.DAEMON_SETS, listings.NODES)
def without_nodes(cluster: Cluster) -> Iterator[Fault]:
    nodes = cluster.of(listings.NODES)
    for daemon in cluster.of(listings.DAEMON_SETS):
        meta, spec = daemon.metadata, daemon.spec.template.spec
        if not nodes or meta.namespace == "kube-system" or meta.deletion_timestamp is not None:
            continue
        if daemon.status.observed_generation < meta.generation or _is_for_windows(spec):
            continue
        if daemon.status.desired_number_scheduled or any(_may_run(spec, node) for node in nodes):
            continue
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("DaemonSet", meta),
            evidence=f"None of the {len(nodes)} nodes is eligible: {_why_no_node(spec, nodes)}.",
            why="The DaemonSet runs no pod anywhere.",
            command="kubectl get nodes --show-labels",
        )


def _is_for_windows(spec: PodSpec) -> bool:
    return spec.node_selector.get("kubernetes.io/os") == "windows"


def _may_run(spec: PodSpec, node: Node) -> bool:
    return matches_node(spec, node) and not _barred(spec, node)


def _barred(spec: PodSpec, node: Node) -> list[str]:
    """The taints that keep the pods of a DaemonSet away."""
    return [
        f"{taint.key}:{taint.effect}"
        for taint in untolerated(spec.tolerations, node.spec.taints, _KEEPS_DAEMONS)
        if not taint.key.startswith(_OF_THE_CONTROLLER)
    ]


def _why_no_node(spec: PodSpec, nodes: Sequence[Node]) -> str:
    for key, value in spec.node_selector.items():
        if not any(node.metadata.labels.get(key) == value for node in nodes):
            return f"no node has the label {key}={value} (nodeSelector)"
    matching = [node for node in nodes if matches_node(spec, node)]
    if matching:
        taints = sorted({taint for node in matching for taint in _barred(spec, node)})
        return f"its pods do not tolerate the taints {', '.join(taints)}"
    if spec.node_selector:
        return f"no node has all of the labels {_labels(spec.node_selector)}"
    return "no node matches the required node affinity"


@rule(
    "daemonset-misscheduled",
    "Pods of a DaemonSet run on nodes that it is not for.",
    listings.DAEMON_SETS,
    uses=(listings.NODES, listings.PODS),
)
def misscheduled(cluster: Cluster) -> Iterator[Fault]:
    for daemon in cluster.of(listings.DAEMON_SETS):
        count = daemon.status.number_misscheduled
        if not count or daemon.metadata.deletion_timestamp is not None:
            continue
        where = _misplaced(cluster, daemon)
        on = f" ({listed(where)})" if where else ""
        yield Fault(
            severity=Severity.WARNING,
            subject=subject_of("DaemonSet", daemon.metadata),
            evidence=f"{count} of its pods run on nodes that it no longer matches{on}: labels or "
            "taints of the nodes have changed.",
            why="If such a pod ends, it is not created again on its node.",
            command=f"kubectl -n {daemon.metadata.namespace} describe daemonset "
            f"{daemon.metadata.name}",
        )


def _misplaced(cluster: Cluster, daemon: DaemonSet) -> list[str]:
    spec = daemon.spec.template.spec
    on = {pod.spec.node_name for pod in cluster.pods_of(subject_of("DaemonSet", daemon.metadata))}
    found = []
    for name in sorted(on):
        node = cluster.find(listings.NODES, name)
        if node is not None and not _may_run(spec, node):
            taints = _barred(spec, node)
            found.append(f"node {name}: taint {taints[0]}" if taints else f"node {name}")
    return found


@rule(
    "selectors-overlap",
    "The selector of a workload matches the pods of another one.",
    listings.DEPLOYMENTS,
    listings.STATEFUL_SETS,
    listings.DAEMON_SETS,
    uses=(listings.REPLICA_SETS, listings.REPLICATION_CONTROLLERS),
)
def overlapping(cluster: Cluster) -> Iterator[Fault]:
    reported: set[frozenset[Subject]] = set()
    for kind, listing in _SELECTING.items():
        for workload in cluster.of(listing):
            meta = workload.metadata
            subject, selector = subject_of(kind, meta), as_selector(workload.spec.selector)
            if not getattr(workload.spec, "replicas", 1):
                continue
            for other in cluster.makers(selector, meta.namespace):
                pair = frozenset((subject, other.subject))
                if (
                    len(pair) == 2
                    and other.wants_pods
                    and _keeps_pods(other)
                    and (pair not in reported)
                ):
                    reported.add(pair)
                    yield _overlap(subject, str(selector), other)


def _keeps_pods(other: Maker) -> bool:
    return other.subject.kind != "Job"


def _overlap(subject: Subject, selector: str, other: Maker) -> Fault:
    return Fault(
        severity=Severity.WARNING,
        subject=subject,
        evidence=f"The selector {selector} also matches the pods of {other.subject}.",
        why="Services, budgets and autoscalers that use this selector count the pods of both "
        "workloads, and either may adopt pods of the other.",
        command=f"kubectl -n {subject.namespace} get pods -l '{selector}' --show-labels",
        causes=(),
    )


@rule(
    "owner-missing",
    "A pod belongs to a workload that does not exist.",
    listings.PODS,
    uses=(*_OWNERS.values(), listings.EVENTS),
)
def without_owners(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.pods:
        meta = pod.metadata
        if meta.deletion_timestamp is not None or not cluster.settled(meta.creation_timestamp):
            continue
        for owner in meta.owner_references:
            listing = _OWNERS.get(owner.kind)
            if listing is not None and cluster.lacks(listing, owner.name, meta.namespace):
                yield _orphaned(
                    subject_of("Pod", meta),
                    f"Its owner {owner.kind} {meta.namespace}/{owner.name} does not exist, and the "
                    "pod was not deleted with it.",
                )
    for event in cluster.of(listings.EVENTS):
        if event.reason == "OwnerRefInvalidNamespace":
            about = event.involved_object
            yield _orphaned(
                Subject(about.kind, about.name, about.namespace),
                f"{event.reason}: {event.message}",
            )


def _orphaned(subject: Subject, evidence: str) -> Fault:
    return Fault(
        severity=Severity.WARNING,
        subject=subject,
        evidence=evidence,
        why="Nothing keeps the object as it is wanted, and the garbage collector may delete it.",
        command=f"kubectl -n {subject.namespace} get {subject.kind.lower()} {subject.name} "
        "-o jsonpath='{.metadata.ownerReferences}'",
        alike=evidence,
    )


RULES = (
    governing_services,
    without_nodes,
    misscheduled,
    overlapping,
    without_owners,
)
