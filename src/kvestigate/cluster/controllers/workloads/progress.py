"""The status of a Deployment: counters, availability, and whether it still moves. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.objects import (
    DatedCondition,
    Deployment,
    DeploymentStatus,
    ReplicaSet,
)
from kvestigate.cluster.controllers.times import seconds, stamp
from kvestigate.cluster.controllers.workloads import rollout
from kvestigate.cluster.controllers.workloads.rollout import Sets

AVAILABLE, PROGRESSING, FAILURE = "Available", "Progressing", "ReplicaFailure"
NEW_AVAILABLE, TIMED_OUT = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
CREATED, FOUND, UPDATED = "NewReplicaSetCreated", "FoundNewReplicaSet", "ReplicaSetUpdated"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"

_NO_DEADLINE = 2**31 - 1

Conditions = tuple[DatedCondition, ...]


def status_of(deployment: Deployment, sets: Sets, now: float) -> DeploymentStatus:
    """The status that follows from the ReplicaSets as they are now."""
    counted = _counted(deployment, sets)
    present = _availability(deployment, counted, now)
    present = _progress(deployment, counted, sets, present, now)
    present = _failures(sets, present)
    return msgspec.structs.replace(counted, conditions=present)


def noted(
    deployment: Deployment, present: Conditions, status: str, reason: str, message: str, now: float
) -> Conditions:
    """A step of the roll-out in the conditions, where a deadline asks for it."""
    if deadline(deployment) is None:
        return present
    return _put(present, PROGRESSING, status, reason, message, now)


def deadline(deployment: Deployment) -> int | None:
    seconds = deployment.spec.progress_deadline_seconds
    return None if seconds == _NO_DEADLINE else seconds


def pause_until_late(deployment: Deployment, status: DeploymentStatus, now: float) -> float | None:
    """Seconds until a roll-out that does not move would be late."""
    limit = deadline(deployment)
    current = conditions.find(status.conditions, PROGRESSING)
    if limit is None or current is None or is_complete(deployment, status):
        return None
    if current.reason in (NEW_AVAILABLE, TIMED_OUT) or deployment.spec.paused:
        return None
    return max(1.0, seconds(current.last_update_time) + limit - now + 1)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    wanted = deployment.spec.replicas
    return (
        status.updated_replicas == wanted
        and status.replicas == wanted
        and status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def _counted(deployment: Deployment, sets: Sets) -> DeploymentStatus:
    available = rollout.available_in(sets.all)
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(replica_set.status.replicas for replica_set in sets.all),
        updated_replicas=sets.new.status.replicas if sets.new else 0,
        ready_replicas=sum(replica_set.status.ready_replicas for replica_set in sets.all),
        available_replicas=available,
        unavailable_replicas=max(0, rollout.wanted_by(sets.all) - available),
        collision_count=deployment.status.collision_count,
    )


def _availability(deployment: Deployment, counted: DeploymentStatus, now: float) -> Conditions:
    least = deployment.spec.replicas - rollout.unavailable(deployment)
    if counted.available_replicas >= least:
        values = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        message = "Deployment does not have minimum availability."
        values = ("False", "MinimumReplicasUnavailable", message)
    return _put(deployment.status.conditions, AVAILABLE, *values, now)


def _progress(
    deployment: Deployment, counted: DeploymentStatus, sets: Sets, present: Conditions, now: float
) -> Conditions:
    limit = deadline(deployment)
    if limit is None:
        return conditions.without(present, PROGRESSING)
    current = conditions.find(present, PROGRESSING)
    settled = current is not None and current.reason == NEW_AVAILABLE
    if settled and counted.replicas == counted.updated_replicas:
        return present
    kind, name = "Deployment", deployment.metadata.name
    if sets.new is not None:
        kind, name = "ReplicaSet", sets.new.metadata.name
    subject = f'{kind} "{name}"'
    if is_complete(deployment, counted):
        message = f"{subject} has successfully progressed."
        return _put(present, PROGRESSING, "True", NEW_AVAILABLE, message, now)
    if _moves(deployment.status, counted):
        return _moved(present, f"{subject} is progressing.", now)
    if current is not None and _is_late(current, limit, now):
        message = f"{subject} has timed out progressing."
        return _put(present, PROGRESSING, "False", TIMED_OUT, message, now)
    return present


def _moves(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _moved(present: Conditions, message: str, now: float) -> Conditions:
    """Every step counts anew towards the deadline, so the update time moves with it."""
    new = _condition(PROGRESSING, "True", UPDATED, message, now)
    old = conditions.find(present, PROGRESSING)
    if old is not None and old.status == "True":
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return (*conditions.without(present, PROGRESSING), new)


def _is_late(current: DatedCondition, limit: int, now: float) -> bool:
    if current.reason == NEW_AVAILABLE:
        return False
    return current.reason == TIMED_OUT or seconds(current.last_update_time) + limit < now


def _failures(sets: Sets, present: Conditions) -> Conditions:
    """What keeps the newest ReplicaSet that has trouble from creating pods."""
    for replica_set in _newest_first(sets):
        failure = conditions.find(replica_set.status.conditions, FAILURE)
        if failure is not None:
            copy = DatedCondition(
                type=FAILURE,
                status=failure.status,
                reason=failure.reason,
                message=failure.message,
                last_transition_time=failure.last_transition_time,
                last_update_time=failure.last_transition_time,
            )
            return conditions.put(present, copy)
    return conditions.without(present, FAILURE)


def _newest_first(sets: Sets) -> Sequence[ReplicaSet]:
    return sets.all[::-1]


def _put(
    present: Conditions, type: str, status: str, reason: str, message: str, now: float
) -> Conditions:
    old = conditions.find(present, type)
    if old is not None and (old.status, old.reason) == (status, reason):
        return present
    return conditions.put(present, _condition(type, status, reason, message, now))


def _condition(type: str, status: str, reason: str, message: str, now: float) -> DatedCondition:
    at = stamp(now)
    return DatedCondition(type, status, reason, message, at, at)
