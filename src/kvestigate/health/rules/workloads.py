"""Workloads that have fewer available pods than they want. Pure.

These are symptoms: the pods that are not ready are named as causes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kvestigate.health.cluster import Cluster, condition, is_ready, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.health.rules.rollouts import is_stalled, waits_for_resume
from kvestigate.kube.views.meta import Condition
from kvestigate.render.human import listed, since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.meta import WrittenMeta
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.workloads import StatefulSet

_STARTING = timedelta(minutes=5)
_REVISION = "controller-revision-hash"


@dataclass(frozen=True, slots=True)
class _State:
    """What a workload wants, and what it has."""

    kind: str
    meta: WrittenMeta
    wanted: int
    available: int
    min_ready_seconds: int
    conditions: tuple[Condition, ...] = ()
    creates_pods_for: tuple[Subject, ...] = ()
    """Objects whose events tell why pods cannot be created; the workload itself is one."""
    order: str = ""
    """What else keeps pods from being created or updated."""

    @property
    def subject(self) -> Subject:
        return subject_of(self.kind, self.meta)


@rule(
    "deployment-unavailable",
    "A Deployment has fewer available pods than it wants.",
    listings.DEPLOYMENTS,
    listings.PODS,
    uses=(listings.REPLICA_SETS, listings.EVENTS),
)
def deployments(cluster: Cluster) -> Iterator[Fault]:
    sets = _replica_sets(cluster)
    for deployment in cluster.of(listings.DEPLOYMENTS):
        if is_stalled(deployment) or waits_for_resume(deployment):
            continue  # told by the rules of rollouts
        meta, spec, status = deployment.metadata, deployment.spec, deployment.status
        state = _State(
            "Deployment",
            meta,
            spec.replicas,
            status.available_replicas,
            spec.min_ready_seconds,
            status.conditions,
            sets.get((meta.namespace, meta.name), ()),
        )
        yield from _unavailable(cluster, state)


def _replica_sets(cluster: Cluster) -> dict[tuple[str, str], tuple[Subject, ...]]:
    """(namespace, Deployment) -> its ReplicaSets that want pods."""
    sets: dict[tuple[str, str], tuple[Subject, ...]] = {}
    for replica_set in cluster.of(listings.REPLICA_SETS):
        meta = replica_set.metadata
        for owner in meta.owner_references if replica_set.spec.replicas else ():
            if owner.kind == "Deployment":
                key = (meta.namespace, owner.name)
                sets[key] = (*sets.get(key, ()), subject_of("ReplicaSet", meta))
    return sets


@rule(
    "statefulset-unavailable",
    "A StatefulSet has fewer available pods than it wants.",
    listings.STATEFUL_SETS,
    listings.PODS,
    uses=(listings.EVENTS,),
)
def stateful_sets(cluster: Cluster) -> Iterator[Fault]:
    for stateful in cluster.of(listings.STATEFUL_SETS):
        spec, status = stateful.spec, stateful.status
        yield from _unavailable(
            cluster,
            _State(
                "StatefulSet",
                stateful.metadata,
                spec.replicas,
                min(status.available_replicas, status.ready_replicas),
                spec.min_ready_seconds,
                status.conditions,
                order=_order(cluster, stateful),
            ),
        )


def _order(cluster: Cluster, stateful: StatefulSet) -> str:
    """Why the other pods of a StatefulSet are neither created nor updated."""
    meta = stateful.metadata
    pods = [pod for pod in cluster.pods_of(subject_of("StatefulSet", meta)) if not is_ready(pod)]
    if not pods:
        return ""
    first = min(pods, key=_ordinal)
    revision, newest = first.metadata.labels.get(_REVISION), stateful.status.update_revision
    if revision and newest and revision != newest and _is_rolling(stateful):
        return (
            f" Pod {first.metadata.name} has revision {revision}, the StatefulSet {newest}: if the "
            "pod cannot become ready, delete it, so that it is created anew."
        )
    if stateful.spec.pod_management_policy == "OrderedReady" and (
        len(cluster.pods_of(subject_of("StatefulSet", meta))) < stateful.spec.replicas
    ):
        return (
            f" Pods after {first.metadata.name} are not created before it is ready (OrderedReady)."
        )
    return ""


def _is_rolling(stateful: StatefulSet) -> bool:
    strategy = stateful.spec.update_strategy
    return strategy.type == "RollingUpdate" and not strategy.rolling_update.partition


def _ordinal(pod: Pod) -> int:
    number = pod.metadata.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() else 0


@rule(
    "daemonset-unavailable",
    "A DaemonSet is not available on all nodes that it is for.",
    listings.DAEMON_SETS,
    listings.PODS,
    uses=(listings.EVENTS,),
)
def daemon_sets(cluster: Cluster) -> Iterator[Fault]:
    for daemon in cluster.of(listings.DAEMON_SETS):
        status = daemon.status
        yield from _unavailable(
            cluster,
            _State(
                "DaemonSet",
                daemon.metadata,
                status.desired_number_scheduled,
                status.number_available,
                daemon.spec.min_ready_seconds,
                status.conditions,
            ),
        )


@rule(
    "replicaset-unavailable",
    "A ReplicaSet without a Deployment has fewer available pods than it wants.",
    listings.REPLICA_SETS,
    listings.PODS,
    uses=(listings.EVENTS,),
)
def replica_sets(cluster: Cluster) -> Iterator[Fault]:
    return _standalone(cluster, "ReplicaSet")


@rule(
    "replicationcontroller-unavailable",
    "A ReplicationController has fewer available pods than it wants.",
    listings.REPLICATION_CONTROLLERS,
    listings.PODS,
    uses=(listings.EVENTS,),
)
def replication_controllers(cluster: Cluster) -> Iterator[Fault]:
    return _standalone(cluster, "ReplicationController")


def _standalone(cluster: Cluster, kind: str) -> Iterator[Fault]:
    listing = listings.REPLICA_SETS if kind == "ReplicaSet" else listings.REPLICATION_CONTROLLERS
    for replica_set in cluster.of(listing):
        meta, spec, status = replica_set.metadata, replica_set.spec, replica_set.status
        if not any(owner.controller for owner in meta.owner_references):
            yield from _unavailable(
                cluster,
                _State(
                    kind,
                    meta,
                    spec.replicas,
                    status.available_replicas,
                    spec.min_ready_seconds,
                    status.conditions,
                ),
            )


def _unavailable(cluster: Cluster, state: _State) -> Iterator[Fault]:
    if state.available >= state.wanted or state.meta.deletion_timestamp is not None:
        return
    pods = cluster.pods_of(state.subject)
    waiting = [pod for pod in pods if not is_ready(pod)]
    running = len([pod for pod in pods if not pod.finished])
    refused = why_not_created(cluster, state.subject, state.conditions, state.creates_pods_for)
    if running >= state.wanted:
        refused = ""  # an old event
    begin = _begin(state, waiting)
    within = _STARTING + timedelta(seconds=state.min_ready_seconds)
    name, kind = state.meta.name, state.kind.lower()
    yield Fault(
        severity=Severity.WARNING if state.available else Severity.CRITICAL,
        subject=state.subject,
        evidence=f"{state.available} of {state.wanted} pods are available{since_when(begin)}: "
        f"{refused or _what_is_missing(state, waiting, running)}{state.order}",
        why="Fewer pods than wanted do the work."
        if state.available
        else "No pod does the work of this workload.",
        command=f"kubectl -n {state.meta.namespace} describe {kind} {name}",
        since=begin,
        # Another rule says more of pods that cannot be created, with the same subject.
        causes=(state.subject,)
        if refused
        else tuple(subject_of("Pod", pod.metadata) for pod in waiting),
        only_as_effect=not refused and not cluster.settled(begin, within),
    )


def _begin(state: _State, waiting: Sequence[Pod]) -> datetime | None:
    available = condition(state.conditions, "Available")
    if available is not None and available.status == "False":
        return available.last_transition_time
    changes = [
        one.last_transition_time
        for pod in waiting
        for one in pod.status.conditions
        if one.type == "Ready" and one.last_transition_time is not None
    ]
    created = [
        pod.metadata.creation_timestamp for pod in waiting if pod.metadata.creation_timestamp
    ]
    return min(changes or created, default=state.meta.creation_timestamp)


def why_not_created(
    cluster: Cluster,
    workload: Subject,
    conditions: Sequence[Condition],
    replica_sets: Sequence[Subject] = (),
) -> str:
    """The API server's answer to the controller that tried to create pods; empty if it could."""
    failure = condition(conditions, "ReplicaFailure")
    if failure is not None and failure.status == "True":
        return f"pods cannot be created ({failure.reason}): {failure.message}"
    for subject in (workload, *replica_sets):
        for event in cluster.events(subject, "FailedCreate"):
            return f"pods cannot be created (FailedCreate): {event.message}"
    return ""


def _what_is_missing(state: _State, waiting: Sequence[Pod], running: int) -> str:
    names = [pod.metadata.name for pod in waiting]
    if names:
        verb = "is" if len(names) == 1 else "are"
        return f"Pod {listed(names)} {verb} not ready."
    if running < state.wanted:
        return "the other pods do not exist, and no event says why."
    if state.min_ready_seconds:
        return f"its pods are ready, but not yet for minReadySeconds ({state.min_ready_seconds})."
    return "its pods are ready, but its controller has not counted them."


RULES = (deployments, stateful_sets, daemon_sets, replica_sets, replication_controllers)
