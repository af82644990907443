"""ReplicaSets: keep the wanted number of pods of one template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from kvestigate import errors
from kvestigate.client.api import PatchType
from kvestigate.client.cache import Key
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context, slow_start
from kvestigate.cluster.controllers.kinds import PODS, REPLICA_SETS
from kvestigate.cluster.controllers.objects import ReplicaSet, ReplicaSetStatus
from kvestigate.cluster.controllers.owners import Claim
from kvestigate.cluster.controllers.pods import (
    first_to_go,
    is_active,
    is_available,
    is_ready,
    next_available,
)
from kvestigate.cluster.controllers.templates import pod_from
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.pods import Pod

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
    replica_set: ReplicaSet, pods: Sequence[Pod], related: Sequence[Pod], now: float
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


def _status(replica_set: ReplicaSet, active: Sequence[Pod], now: float) -> ReplicaSetStatus:
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


class ReplicaSetController:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._sets = context.watch(REPLICA_SETS, owners.itself)
        owners.index_owners(self._sets)
        self._pods = context.watch(
            PODS,
            owners.owner_keys(
                REPLICA_SETS, self._sets, lambda replica_set: replica_set.spec.selector
            ),
        )
        owners.index_owners(self._pods)

    async def reconcile(self, key: Key) -> float | None:
        replica_set = self._sets.get(key)
        if replica_set is None:
            return None
        candidates = owners.candidates(self._pods, replica_set)
        selector = owners.selector_of(replica_set.spec.selector)
        claim = owners.claim(replica_set, selector, candidates)
        await self._take(replica_set, claim)
        related = self._related(replica_set, claim.owned)
        decision = decide(replica_set, claim.owned, related, self._context.now())
        status = decision.status
        failure: errors.KvestigateError | None = None
        try:
            await self._create(replica_set, decision.create)
            await self._delete(replica_set, decision.delete)
        except errors.KvestigateError as error:
            failure = error
            reason = "FailedCreate" if decision.create else "FailedDelete"
            status = self._failed(replica_set, status, reason, error)
        if not (decision.create or decision.delete) or failure:
            # After a change the pods' own news bring us back to a status that is worth writing.
            await self._context.put_status(REPLICA_SETS, replica_set, status)
        if failure:
            raise failure
        return decision.pause

    async def _take(self, replica_set: ReplicaSet, claim: Claim[Pod]) -> None:
        patch = partial(self._context.patch, PODS, type=PatchType.STRATEGIC)
        for pod in claim.adopt:
            await patch(pod, owners.adoption(REPLICA_SETS, replica_set, pod))
        for pod in claim.release:
            await patch(pod, owners.release(replica_set, pod))

    def _related(self, replica_set: ReplicaSet, pods: Sequence[Pod]) -> Sequence[Pod]:
        """The pods of all ReplicaSets of the same Deployment."""
        owner = owners.controller_of(replica_set)
        if owner is None:
            return pods
        siblings = self._sets.find(owners.OWNER, owner.uid)
        return [
            pod
            for sibling in siblings
            for pod in self._pods.find(owners.OWNER, sibling.metadata.uid)
        ]

    async def _create(self, replica_set: ReplicaSet, count: int) -> None:
        async def create() -> None:
            pod = pod_from(replica_set.spec.template, REPLICA_SETS, replica_set)
            try:
                created = await self._context.create(PODS, pod)
            except errors.KvestigateError as error:
                message = f"Error creating: {error.message}"
                self._tell(replica_set, "FailedCreate", message, WARNING)
                raise
            message = f"Created pod: {created.metadata.name}"
            self._tell(replica_set, "SuccessfulCreate", message)

        await slow_start([create] * count)

    async def _delete(self, replica_set: ReplicaSet, pods: Sequence[Pod]) -> None:
        async def delete(pod: Pod) -> None:
            if await self._context.delete(PODS, pod):
                message = f"Deleted pod: {pod.metadata.name}"
                self._tell(replica_set, "SuccessfulDelete", message)

        await slow_start([partial(delete, pod) for pod in pods])

    def _tell(
        self, replica_set: ReplicaSet, reason: str, message: str, type: str = "Normal"
    ) -> None:
        self._context.tell(REPLICA_SETS, replica_set, reason, message, type)

    def _failed(
        self,
        replica_set: ReplicaSet,
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
