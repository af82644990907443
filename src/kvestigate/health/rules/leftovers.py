"""Pods that ended badly, that cannot end, or whose node is gone. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kvestigate.health.cluster import Cluster, condition
from kvestigate.health.model import Fault, Subject
from kvestigate.health.pods import (
    at,
    describe,
    has_controller,
    how_it_ended,
    logs,
    quoted,
    sentence,
    since,
    subject,
    troubled_node,
    unready_since,
)
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import is_ready
from kvestigate.snapshot.pods import Pod

_EVICTED = "Evicted"
_DEADLINE = "DeadlineExceeded"
_PLANNED = {"NodeShutdown", "Terminated", "Shutdown", "Preempting", "Preempted", "NodeLost"}
"""Reasons of pods that ended because of their node; their controller has replaced them."""
_REJECTED = "The kubelet of the node refused the pod."
_REASONS = {
    "NodeAffinity": "the node does not match the pod's node selector or node affinity",
    "UnexpectedAdmissionError": "the node could not give the pod its devices",
    "TopologyAffinityError": "the node cannot align the pod's resources",
    "NodePorts": "the pod's host port is in use on the node",
    "TaintToleration": "the pod does not tolerate a taint of the node",
    "OutOfcpu": "the node has too little free CPU",
    "OutOfmemory": "the node has too little free memory",
    "OutOfpods": "the node runs the maximum number of pods",
    _DEADLINE: "the pod ran longer than its activeDeadlineSeconds",
}
_GOING = timedelta(minutes=1)
"""After its grace period a pod is gone within seconds."""


@rule("evicted", "A pod was evicted.", listings.PODS, uses=(listings.NODES,))
def evicted(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.of(listings.PODS):
        if pod.status.phase != "Failed" or pod.status.reason != _EVICTED:
            continue
        replaced = has_controller(pod)
        message = quoted(pod.status.message)
        yield Fault(
            severity=Severity.WARNING if replaced else Severity.CRITICAL,
            subject=subject(pod),
            evidence=f"Evicted from {pod.spec.node_name or 'its node'}{since(unready_since(pod))}: "
            + (sentence(message) if message else "the kubelet gives no reason."),
            why="The node ran out of a resource or the pod used more than its limit. "
            + ("The pod object is left over." if replaced else "No controller replaces the pod."),
            command=describe(pod),
            since=unready_since(pod),
            alike=_lacking(message),
        )


def _lacking(message: str) -> str:
    """What is the same for replicas of a message that names containers and amounts."""
    for word in ("ephemeral-storage", "emptyDir", "memory", "inodes", "pids", "disk"):
        if word in message:
            return word
    return ""


@rule("pod-failed", "A pod has failed and is not retried.", listings.PODS)
def failed(cluster: Cluster) -> Iterator[Fault]:
    """All but evicted pods and those of Jobs, for which there are other rules."""
    for pod in cluster.of(listings.PODS):
        if pod.status.phase not in ("Failed", "Unknown") or pod.status.reason == _EVICTED:
            continue
        owner = cluster.workload(pod)
        replaced = owner.kind != "Pod"
        if owner.kind in ("Job", "CronJob") or pod.metadata.deletion_timestamp:
            continue
        if replaced and (pod.status.reason in _PLANNED or not pod.status.reason):
            continue
        container, ending = _end(pod)
        begun = unready_since(pod)
        yield Fault(
            severity=Severity.WARNING if replaced else Severity.CRITICAL,
            subject=subject(pod),
            evidence=f"{pod.status.phase}{since(begun)}: {sentence(ending or _said(pod))}",
            why=_REJECTED
            if replaced
            else "No controller replaces the pod, and its restart policy does not restart it.",
            command=logs(pod, container, previous=False) if container else describe(pod),
            since=begun,
            alike=pod.status.reason,
        )


def _said(pod: Pod) -> str:
    reason, message = pod.status.reason, quoted(pod.status.message)
    meaning = _REASONS.get(reason, "")
    parts = [part for part in (meaning, f"{reason}: {message}" if message else reason) if part]
    return ". ".join(parts) or "the reason is unknown"


def _end(pod: Pod) -> tuple[str, str]:
    """The container that failed, and how."""
    if pod.status.reason:
        return "", ""
    for status in pod.status.all_statuses:
        state = status.state.terminated
        if state is not None and state.exit_code:
            return status.name, f"container {status.name}: {how_it_ended(state)}"
    return "", ""


@rule("stuck-terminating", "A pod does not end.", listings.PODS, uses=(listings.NODES,))
def stuck_terminating(cluster: Cluster) -> Iterator[Fault]:
    for pod in cluster.of(listings.PODS):
        due = pod.metadata.deletion_timestamp
        if due is None or not cluster.settled(due, _GOING):
            continue
        node = troubled_node(cluster, pod)
        gone = pod.spec.node_name and cluster.lacks(listings.NODES, pod.spec.node_name)
        finalizers = pod.metadata.finalizers
        if finalizers:
            cause = f"the finalizer {', '.join(finalizers)} has not been removed"
        elif node or gone:
            state = "does not exist" if gone else "is not ready"
            cause = f"node {pod.spec.node_name} {state}, so no kubelet confirms the end"
        else:
            cause = "the kubelet has not confirmed that its containers have ended"
        yield Fault(
            severity=Severity.WARNING if finalizers else Severity.CRITICAL,
            subject=subject(pod),
            evidence=f"Terminating; its grace period ended at {at(due)}, but {cause}.",
            why="The pod keeps its name, its volumes and its place on the node.",
            command=describe(pod),
            since=due,
            causes=node if not finalizers else (),
            alike=f"{finalizers}",
        )


@rule("pod-on-lost-node", "The node of a pod is gone or not ready.", listings.PODS, listings.NODES)
def on_lost_nodes(cluster: Cluster) -> Iterator[Fault]:
    known = {node.metadata.name: node for node in cluster.of(listings.NODES)}
    healthy = {name for name, node in known.items() if is_ready(node)}
    for pod in cluster.pods:
        name = pod.spec.node_name
        if not name or not known or name in healthy or pod.metadata.deletion_timestamp:
            continue
        if name not in known:
            cause = f"node {name} does not exist"
            begun = pod.metadata.creation_timestamp
        else:
            ready = condition(known[name].status.conditions, "Ready")
            begun = ready.last_transition_time if ready is not None else None
            cause = f"node {name} is not ready{since(begun)}"
        yield Fault(
            severity=Severity.CRITICAL,
            subject=subject(pod),
            evidence=f"The pod is bound to {name}: {cause}. "
            + ("No kubelet runs the pod." if name not in known else "Its state is unknown."),
            why="Nothing starts, probes or ends the pod until its node answers.",
            command=describe(pod),
            since=begun,
            causes=(Subject("Node", name),),
            alike=name,
        )


RULES = (evicted, failed, stuck_terminating, on_lost_nodes)
