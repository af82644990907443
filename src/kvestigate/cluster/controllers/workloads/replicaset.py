"""ReplicaSets and ReplicationControllers: keep the wanted number of pods of one template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec

from kvestigate import errors
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context, slow_start
from kvestigate.cluster.controllers.kinds import REPLICA_SETS, REPLICATION_CONTROLLERS, Kind
from kvestigate.cluster.controllers.objects import (
    ReplicaSet,
    ReplicaSetStatus,
    ReplicationController,
)
from kvestigate.cluster.controllers.pods import (
    first_to_go,
    is_active,
    is_available,
    is_ready,
    next_available,
)
from kvestigate.cluster.controllers.reconciler import PodOwner
from kvestigate.cluster.controllers.templates import pod_from
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.pods import Pod

Replicated: TypeAlias = ReplicaSet | ReplicationController

BURST = 500
"""Pods that one look creates or deletes at most."""
FAILURE = "ReplicaFailure"


@dataclass(frozen=True, slots=True)
class Decision:
    create: int
    delete: tuple[Pod, ...]
    status: ReplicaSetStatus
    """What to write when all of it has worked."""
    pause: float | None
    """Seconds until a pod has been ready for long enough."""


def decide(
    replica_set: Replicated, pods: Sequence[Pod], related: Sequence[Pod], now: float
) -> Decision:
    """What brings the owned `pods` to the wanted number."""
    active = [pod for pod in pods if is_active(pod)]
    missing = replica_set.spec.replicas - len(active)
    if replica_set.metadata.deletion_timestamp is not None:
        missing = 0
    # Ranking them all takes a while, and most of the time none has to go.
    doomed = first_to_go(active, related, now)[: min(BURST, -missing)] if missing < 0 else ()
    return Decision(
        create=min(BURST, max(0, missing)),
        delete=tuple(doomed),
        status=_status(replica_set, active, now),
        pause=next_available(active, replica_set.spec.min_ready_seconds, now),
    )


def _status(replica_set: Replicated, active: Sequence[Pod], now: float) -> ReplicaSetStatus:
    spec = replica_set.spec
    labels = ((spec.template.get("metadata") or {}).get("labels") or {}).items()
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(labels <= pod.metadata.labels.items() for pod in active),
        ready_replicas=sum(map(is_ready, active)),
        available_replicas=sum(is_available(pod, spec.min_ready_seconds, now) for pod in active),
        observed_generation=replica_set.metadata.generation,
        conditions=conditions.without(replica_set.status.conditions, FAILURE),
    )


class Replicator(PodOwner[Replicated]):
    def __init__(self, context: Context, kind: Kind[Any]) -> None:
        super().__init__(context, kind)

    async def _reconcile(self, replica_set: Replicated) -> float | None:
        pods = await self._claim(replica_set)
        related = self._related(replica_set, pods)
        decision = decide(replica_set, pods, related, self._context.now())
        status = decision.status
        failure: errors.KvestigateError | None = None
        try:
            body = pod_from(replica_set.spec.template, self._kind, replica_set)
            await slow_start([partial(self._create_pod, replica_set, body)] * decision.create)
            delete = partial(self._delete_pod, replica_set)
            await slow_start([partial(delete, pod) for pod in decision.delete])
        except errors.KvestigateError as error:
            failure = error
            reason = "FailedCreate" if decision.create else "FailedDelete"
            status = self._failed(replica_set, status, reason, error)
        if not (decision.create or decision.delete) or failure:
            # After a change the pods' own news bring us back to a status that is worth writing.
            await self._put_status(replica_set, status)
        if failure:
            raise failure
        return decision.pause

    def _related(self, replica_set: Replicated, pods: Sequence[Pod]) -> Sequence[Pod]:
        """The pods of all ReplicaSets of the same Deployment."""
        owner = owners.controller_of(replica_set)
        if owner is None:
            return pods
        siblings = self._objects.find(owners.OWNER, owner.uid)
        return [
            pod
            for sibling in siblings
            for pod in self._pods.find(owners.OWNER, sibling.metadata.uid)
        ]

    def _failed(
        self,
        replica_set: Replicated,
        status: ReplicaSetStatus,
        reason: str,
        error: errors.KvestigateError,
    ) -> ReplicaSetStatus:
        """What failed first stays said: later messages name other pods, and each change of the
        status would be a reason to try again at once."""
        failed = conditions.find(replica_set.status.conditions, FAILURE)
        if failed is None:
            failed = Condition(FAILURE, "True", reason, error.message, stamp(self._context.now()))
        return msgspec.structs.replace(status, conditions=conditions.put(status.conditions, failed))


class ReplicaSetController(Replicator):
    def __init__(self, context: Context) -> None:
        super().__init__(context, REPLICA_SETS)


class ReplicationControllerController(Replicator):
    def __init__(self, context: Context) -> None:
        super().__init__(context, REPLICATION_CONTROLLERS)
