"""Changes of workloads that do not reach the pods: stalled, paused or held back. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from kvestigate.health.cluster import Cluster, condition, is_ready, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.human import since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.source import Listing
from kvestigate.snapshot.workloads import Deployment, StatefulSet

_PROMPT = timedelta(minutes=2)
"""A controller acts on a change within seconds."""
_MANAGER = Subject("Lease", "kube-controller-manager", "kube-system")


def is_stalled(deployment: Deployment) -> bool:
    progress = condition(deployment.status.conditions, "Progressing")
    return (
        progress is not None
        and progress.reason == "ProgressDeadlineExceeded"
        and deployment.spec.replicas > 0
        and deployment.metadata.deletion_timestamp is None
    )


def waits_for_resume(deployment: Deployment) -> bool:
    """Whether a paused rollout has changes that the pods do not have."""
    status = deployment.status
    return (
        deployment.spec.paused
        and status.observed_generation >= deployment.metadata.generation
        and status.updated_replicas < deployment.spec.replicas
        and deployment.metadata.deletion_timestamp is None
    )


@rule(
    "rollout-stalled",
    "The rollout of a Deployment has exceeded its progress deadline.",
    listings.DEPLOYMENTS,
    uses=(listings.PODS,),
)
def stalled(cluster: Cluster) -> Iterator[Fault]:
    for deployment in cluster.of(listings.DEPLOYMENTS):
        progress = condition(deployment.status.conditions, "Progressing")
        if progress is None or not is_stalled(deployment):
            continue
        meta, status, wanted = deployment.metadata, deployment.status, deployment.spec.replicas
        failure = condition(status.conditions, "ReplicaFailure")
        refused = (
            f" Pods cannot be created ({failure.reason}): {failure.message}"
            if failure is not None and failure.status == "True"
            else ""
        )
        subject = subject_of("Deployment", meta)
        yield Fault(
            severity=Severity.WARNING if status.available_replicas else Severity.CRITICAL,
            subject=subject,
            evidence=f"The rollout is stalled{since_when(progress.last_transition_time)} "
            f"({progress.reason}: {progress.message}): {status.updated_replicas} of {wanted} pods "
            f"are updated, {status.available_replicas} are available.{refused}",
            why="The new version does not reach all pods, and the Deployment does not roll back "
            "by itself.",
            command=f"kubectl -n {meta.namespace} rollout undo deployment/{meta.name} "
            "--dry-run=server",
            since=progress.last_transition_time,
            causes=_waiting_pods(cluster, subject),
        )


def _waiting_pods(cluster: Cluster, workload: Subject) -> tuple[Subject, ...]:
    pods = cluster.pods_of(workload)
    return tuple(subject_of("Pod", pod.metadata) for pod in pods if not is_ready(pod))


@rule("rollout-paused", "A paused rollout has unapplied changes.", listings.DEPLOYMENTS)
def paused(cluster: Cluster) -> Iterator[Fault]:
    for deployment in cluster.of(listings.DEPLOYMENTS):
        if not waits_for_resume(deployment):
            continue
        meta, status, wanted = deployment.metadata, deployment.status, deployment.spec.replicas
        progress = condition(status.conditions, "Progressing")
        begin = progress.last_transition_time if progress is not None else meta.creation_timestamp
        yield Fault(
            severity=Severity.WARNING if status.available_replicas else Severity.CRITICAL,
            subject=subject_of("Deployment", meta),
            evidence=f"The rollout is paused (spec.paused){since_when(begin)}: "
            f"{status.updated_replicas} of {wanted} pods have the current template, "
            f"{status.available_replicas} are available.",
            why="Changes of the Deployment do not reach its pods until the rollout is resumed.",
            command=f"kubectl -n {meta.namespace} rollout resume deployment/{meta.name}",
            since=begin,
        )


@rule(
    "update-held-back",
    "A StatefulSet or DaemonSet keeps pods of an old revision.",
    listings.STATEFUL_SETS,
    listings.DAEMON_SETS,
)
def held_back(cluster: Cluster) -> Iterator[Fault]:
    for stateful in cluster.of(listings.STATEFUL_SETS):
        status = stateful.status
        old = stateful.spec.replicas - status.updated_replicas
        differs = status.current_revision != status.update_revision
        if differs and old > 0 and status.observed_generation >= stateful.metadata.generation:
            cause = _why_held_back(stateful)
            if cause:
                subject = subject_of("StatefulSet", stateful.metadata)
                yield _kept(subject, old, stateful.spec.replicas, cause)
    for daemon in cluster.of(listings.DAEMON_SETS):
        wanted, updated = (
            daemon.status.desired_number_scheduled,
            daemon.status.updated_number_scheduled,
        )
        current = daemon.status.observed_generation >= daemon.metadata.generation
        if daemon.spec.update_strategy.type == "OnDelete" and updated < wanted and current:
            subject = subject_of("DaemonSet", daemon.metadata)
            yield _kept(subject, wanted - updated, wanted, _ON_DELETE)


_ON_DELETE = "the update strategy is OnDelete, and nobody deleted them"


def _why_held_back(stateful: StatefulSet) -> str:
    strategy = stateful.spec.update_strategy
    if strategy.type == "OnDelete":
        return _ON_DELETE
    partition = strategy.rolling_update.partition
    return _below(partition) if partition >= stateful.spec.replicas else ""


def _below(partition: int) -> str:
    return f"the partition is {partition}, so pods below ordinal {partition} keep the old revision"


@rule(
    "update-partitioned",
    "A partition keeps pods of a StatefulSet at an old revision.",
    listings.STATEFUL_SETS,
    strict=True,
)
def partitioned(cluster: Cluster) -> Iterator[Fault]:
    """A canary: meant so, until somebody forgets the other pods."""
    for stateful in cluster.of(listings.STATEFUL_SETS):
        status, partition = stateful.status, stateful.spec.update_strategy.rolling_update.partition
        old = stateful.spec.replicas - status.updated_replicas
        canary = 0 < partition < stateful.spec.replicas
        if canary and old > 0 and status.current_revision != status.update_revision:
            yield _kept(
                subject_of("StatefulSet", stateful.metadata),
                old,
                stateful.spec.replicas,
                _below(partition),
                Severity.INFO,
            )


def _kept(
    subject: Subject, old: int, wanted: int, cause: str, severity: Severity = Severity.WARNING
) -> Fault:
    return Fault(
        severity=severity,
        subject=subject,
        evidence=f"{old} of {wanted} pods have an old revision: {cause}.",
        why="These pods run another version than the workload describes, until somebody acts.",
        command=f"kubectl -n {subject.namespace} rollout status "
        f"{subject.kind.lower()}/{subject.name} --watch=false",
    )


_CONTROLLED: dict[str, Listing[Any]] = {
    "Deployment": listings.DEPLOYMENTS,
    "StatefulSet": listings.STATEFUL_SETS,
    "DaemonSet": listings.DAEMON_SETS,
    "ReplicaSet": listings.REPLICA_SETS,
    "ReplicationController": listings.REPLICATION_CONTROLLERS,
}


@rule(
    "controller-behind",
    "The controller of a workload has not acted on its last change.",
    listings.DEPLOYMENTS,
    listings.STATEFUL_SETS,
    listings.DAEMON_SETS,
    uses=(listings.REPLICA_SETS, listings.REPLICATION_CONTROLLERS),
)
def behind(cluster: Cluster) -> Iterator[Fault]:
    for kind, listing in _CONTROLLED.items():
        for workload in cluster.of(listing):
            meta, seen = workload.metadata, workload.status.observed_generation
            changed = meta.last_written
            if seen < meta.generation and cluster.settled(changed, _PROMPT):
                yield Fault(
                    severity=Severity.CRITICAL,
                    subject=subject_of(kind, meta),
                    evidence=f"Generation {meta.generation} was written{_at(changed)}, but the "
                    f"controller has only seen generation {seen} (status.observedGeneration).",
                    why="kube-controller-manager is down or cannot write: nothing keeps the "
                    "workload as it is wanted.",
                    command="kubectl -n kube-system get lease kube-controller-manager -o yaml",
                    since=changed,
                    causes=(_MANAGER,),
                )


def _at(moment: datetime | None) -> str:
    return f" at {moment:%Y-%m-%d %H:%M} UTC" if moment is not None else ""


RULES = (stalled, paused, held_back, partitioned, behind)
