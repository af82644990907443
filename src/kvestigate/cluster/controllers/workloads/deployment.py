"""Deployments: roll from one template to the next, a few pods at a time, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.cache import Change, Key
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import DEPLOYMENTS, PODS, REPLICA_SETS
from kvestigate.cluster.controllers.objects import (
    DatedCondition,
    Deployment,
    DeploymentStatus,
    ReplicaSet,
)
from kvestigate.cluster.controllers.reconciler import Reconciler, claimed
from kvestigate.cluster.controllers.templates import HASH_LABEL, same_template, template_hash
from kvestigate.cluster.controllers.workloads import progress, rollout
from kvestigate.cluster.controllers.workloads.rollout import Sets, Sizes
from kvestigate.kube.views.pods import Pod

_OWN_ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        rollout.REVISION,
        rollout.REVISION_HISTORY,
        rollout.DESIRED,
        rollout.MAXIMUM,
    }
)
"""What a ReplicaSet does not take over from its Deployment."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One step of a rollout; the changes it makes trigger the next."""

    status: DeploymentStatus
    create: dict[str, Any] | None = None
    """The ReplicaSet of a template that has none yet."""
    patches: tuple[tuple[ReplicaSet, dict[str, Any]], ...] = ()
    """New sizes and annotations of ReplicaSets."""
    revision: str | None = None
    """The Deployment's own revision annotation, where it has to change."""
    forget: tuple[ReplicaSet, ...] = ()
    pause: float | None = None

    @property
    def moves(self) -> bool:
        """Whether any ReplicaSet is created or resized."""
        return self.create is not None or any("spec" in patch for _, patch in self.patches)


def decide(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], pods: Sequence[Pod], now: float
) -> Decision:
    """The next step; `pods` are those of all the ReplicaSets."""
    sets = rollout.sort_out(deployment, replica_sets)
    status = progress.status_of(deployment, sets, now)
    if deployment.metadata.deletion_timestamp is not None:
        return Decision(status)
    if deployment.spec.paused or rollout.is_rescaled(deployment, sets):
        return _resize(deployment, sets, status, now)
    if not rollout.rolls(deployment):
        return _recreate(deployment, sets, pods, status, now)
    if sets.new is None:
        return _begin(deployment, sets, status, now)
    return _continue(deployment, sets, rollout.roll(deployment, sets), status, now)


def _resize(deployment: Deployment, sets: Sets, status: DeploymentStatus, now: float) -> Decision:
    present = _pausing(deployment, status, now)
    forget = rollout.to_forget(deployment, sets) if deployment.spec.paused else []
    return Decision(
        status=msgspec.structs.replace(status, conditions=present),
        patches=_patches(deployment, sets, rollout.rescale(deployment, sets), sized=True),
        forget=tuple(forget),
    )


def _pausing(
    deployment: Deployment, status: DeploymentStatus, now: float
) -> tuple[DatedCondition, ...]:
    present = status.conditions
    current = conditions.find(present, progress.PROGRESSING)
    if current is not None and current.reason == progress.TIMED_OUT:
        return present
    paused = current is not None and current.reason == progress.PAUSED
    if deployment.spec.paused and not paused:
        values = ("Unknown", progress.PAUSED, "Deployment is paused")
        return progress.noted(deployment, present, *values, now)
    if not deployment.spec.paused and paused:
        values = ("Unknown", progress.RESUMED, "Deployment is resumed")
        return progress.noted(deployment, present, *values, now)
    return present


def _recreate(
    deployment: Deployment,
    sets: Sets,
    pods: Sequence[Pod],
    status: DeploymentStatus,
    now: float,
) -> Decision:
    """All old pods go, and only then the new ones come."""
    sizes = {replica_set.metadata.name: 0 for replica_set in sets.old if replica_set.spec.replicas}
    if sizes or _old_remain(sets, pods):
        return _continue(deployment, sets, sizes, status, now)
    if sets.new is None:
        return _begin(deployment, sets, status, now)
    wanted = deployment.spec.replicas
    grow = {sets.new.metadata.name: wanted} if sets.new.spec.replicas != wanted else {}
    return _continue(deployment, sets, grow, status, now)


def _old_remain(sets: Sets, pods: Sequence[Pod]) -> bool:
    if any(replica_set.status.replicas for replica_set in sets.old):
        return True
    new = sets.new.metadata.uid if sets.new else None
    return any(
        not pod.finished and (owner := owners.controller_of(pod)) and owner.uid != new
        for pod in pods
    )


def _begin(deployment: Deployment, sets: Sets, status: DeploymentStatus, now: float) -> Decision:
    body = new_replica_set(deployment, sets)
    message = f'Created new replica set "{body["metadata"]["name"]}"'
    present = _pausing(deployment, status, now)
    present = progress.noted(deployment, present, "True", progress.CREATED, message, now)
    return Decision(
        status=msgspec.structs.replace(status, conditions=present),
        create=body,
        revision=body["metadata"]["annotations"][rollout.REVISION],
    )


def _continue(
    deployment: Deployment, sets: Sets, sizes: Sizes, status: DeploymentStatus, now: float
) -> Decision:
    present = _pausing(deployment, status, now)
    revision = None
    if sets.new is not None:
        if conditions.find(present, progress.PROGRESSING) is None:
            message = f'Found new replica set "{sets.new.metadata.name}"'
            present = progress.noted(deployment, present, "True", progress.FOUND, message, now)
        revision = str(_revision(sets))
        if deployment.metadata.annotations.get(rollout.REVISION) == revision:
            revision = None
    status = msgspec.structs.replace(status, conditions=present)
    done = progress.is_complete(deployment, status)
    return Decision(
        status=status,
        patches=_patches(deployment, sets, sizes),
        revision=revision,
        forget=tuple(rollout.to_forget(deployment, sets)) if done else (),
        pause=progress.pause_until_late(deployment, status, now),
    )


def _revision(sets: Sets) -> int:
    """The revision of the new ReplicaSet: one more than that of any old one."""
    highest = max(map(rollout.revision_of, sets.old), default=0)
    current = rollout.revision_of(sets.new) if sets.new else 0
    return max(highest + 1, current)


def _patches(
    deployment: Deployment, sets: Sets, sizes: Sizes, *, sized: bool = False
) -> tuple[tuple[ReplicaSet, dict[str, Any]], ...]:
    patches = []
    for replica_set in sets.all:
        name, annotations = replica_set.metadata.name, replica_set.metadata.annotations
        wanted: dict[str, str] = {}
        spec: dict[str, Any] = {}
        if replica_set is sets.new and not deployment.spec.paused:
            wanted |= _annotations(deployment, sets)
            if replica_set.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
                spec["minReadySeconds"] = deployment.spec.min_ready_seconds
        if name in sizes or (sized and replica_set.spec.replicas):
            wanted |= _sizing(deployment)
        if name in sizes:
            spec["replicas"] = sizes[name]
        changed = {key: value for key, value in wanted.items() if annotations.get(key) != value}
        patch: dict[str, Any] = {"spec": spec} if spec else {}
        if changed:
            patch["metadata"] = {"annotations": changed}
        if patch:
            patches.append((replica_set, patch))
    return tuple(patches)


def _sizing(deployment: Deployment) -> dict[str, str]:
    replicas = deployment.spec.replicas
    return {
        rollout.DESIRED: str(replicas),
        rollout.MAXIMUM: str(replicas + rollout.surge(deployment)),
    }


def _annotations(deployment: Deployment, sets: Sets) -> dict[str, str]:
    annotations = {
        key: value
        for key, value in deployment.metadata.annotations.items()
        if key not in _OWN_ANNOTATIONS
    }
    revision = _revision(sets)
    annotations[rollout.REVISION] = str(revision)
    before = rollout.revision_of(sets.new) if sets.new else 0
    if sets.new and 0 < before < revision:
        past = sets.new.metadata.annotations.get(rollout.REVISION_HISTORY, "")
        annotations[rollout.REVISION_HISTORY] = f"{past},{before}" if past else str(before)
    return annotations


def new_replica_set(deployment: Deployment, sets: Sets) -> dict[str, Any]:
    """The ReplicaSet of the Deployment's present template."""
    spec, metadata = deployment.spec, deployment.metadata
    suffix = template_hash(spec.template, deployment.status.collision_count)
    template_meta = dict(spec.template.get("metadata") or {})
    labels = {**(template_meta.get("labels") or {}), HASH_LABEL: suffix}
    chosen = {**(spec.selector.get("matchLabels") or {}), HASH_LABEL: suffix}
    return {
        "apiVersion": REPLICA_SETS.resource.api_version,
        "kind": REPLICA_SETS.resource.kind,
        "metadata": {
            "name": f"{metadata.name}-{suffix}",
            "namespace": metadata.namespace,
            "labels": labels,
            "annotations": _annotations(deployment, sets) | _sizing(deployment),
            "ownerReferences": [owners.controller_reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": rollout.new_size(deployment, sets),
            "minReadySeconds": spec.min_ready_seconds,
            "selector": {**spec.selector, "matchLabels": chosen},
            "template": {**spec.template, "metadata": {**template_meta, "labels": labels}},
        },
    }


class DeploymentController(Reconciler[Deployment]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, DEPLOYMENTS)
        to_deployments = owners.owner_keys(DEPLOYMENTS, self._objects)
        self._sets = context.watch(REPLICA_SETS, to_deployments)
        self._pods = context.watch(PODS, self._recreated)

    def _recreated(self, change: Change[Pod]) -> tuple[Key, ...]:
        """The last old pod's end lets a `Recreate` go on; other Deployments need no pods."""
        if change.new is not None and not change.new.finished:
            return ()
        controller = owners.controller_of(change.views[0])
        if controller is None or controller.kind != REPLICA_SETS.resource.kind:
            return ()
        replica_set = self._sets.get(change.key.sibling(controller.name))
        owner = owners.controller_of(replica_set) if replica_set else None
        if owner is None:
            return ()
        key = change.key.sibling(owner.name)
        deployment = self._objects.get(key)
        return () if deployment is None or rollout.rolls(deployment) else (key,)

    async def _reconcile(self, deployment: Deployment) -> float | None:
        candidates = owners.candidates(self._sets, deployment)
        replica_sets = await claimed(
            self._context, DEPLOYMENTS, deployment, REPLICA_SETS, candidates
        )
        pods = [] if rollout.rolls(deployment) else self._pods_of(replica_sets)
        decision = decide(deployment, replica_sets, pods, self._context.now())
        if decision.create is not None and not await self._create(deployment, decision.create):
            return 0.0
        for replica_set, patch in decision.patches:
            await self._resize(deployment, replica_set, patch)
        for replica_set in decision.forget:
            await self._context.delete(REPLICA_SETS, replica_set)
        if decision.revision is not None:
            annotations = {rollout.REVISION: decision.revision}
            patch = {"metadata": {"annotations": annotations}}
            await self._context.patch(DEPLOYMENTS, deployment, patch)
        if not decision.moves:
            # A ReplicaSet that is new or has a new size reports, and that brings us back to a
            # status that is worth writing.
            await self._put_status(deployment, decision.status)
        return decision.pause

    def _pods_of(self, replica_sets: Sequence[ReplicaSet]) -> list[Pod]:
        uids = [replica_set.metadata.uid for replica_set in replica_sets]
        return [pod for uid in uids for pod in self._pods.find(owners.OWNER, uid)]

    async def _create(self, deployment: Deployment, body: dict[str, Any]) -> bool:
        """Whether the new ReplicaSet exists; if not, its name was taken and another is due."""
        try:
            replica_set = await self._context.create(REPLICA_SETS, body)
        except errors.AlreadyExists:
            return await self._collided(deployment, body)
        except errors.KvestigateError as error:
            message = f"Failed to create new replica set {body['metadata']['name']}: {error}"
            self._tell(deployment, "ReplicaSetCreateError", message, WARNING)
            raise
        if replica_set.spec.replicas:
            self._scaled(deployment, replica_set.metadata.name, 0, replica_set.spec.replicas)
        return True

    async def _collided(self, deployment: Deployment, body: dict[str, Any]) -> bool:
        present = await self._context.api.get(
            REPLICA_SETS.resource,
            body["metadata"]["name"],
            namespace=deployment.metadata.namespace,
            type=ReplicaSet,
        )
        owner = owners.controller_of(present)
        mine = owner is not None and owner.uid == deployment.metadata.uid
        if mine and same_template(present.spec.template, deployment.spec.template):
            self._context.cache(REPLICA_SETS).assume(present)
            return True
        status = msgspec.structs.replace(
            deployment.status, collision_count=(deployment.status.collision_count or 0) + 1
        )
        await self._put_status(deployment, status)
        return False

    async def _resize(
        self, deployment: Deployment, replica_set: ReplicaSet, patch: dict[str, Any]
    ) -> None:
        await self._context.patch(REPLICA_SETS, replica_set, patch)
        size = (patch.get("spec") or {}).get("replicas")
        if size is not None:
            before = replica_set.spec.replicas
            self._scaled(deployment, replica_set.metadata.name, before, size)

    def _scaled(self, deployment: Deployment, name: str, before: int, now: int) -> None:
        direction = "up" if now > before else "down"
        message = f"Scaled {direction} replica set {name} from {before} to {now}"
        self._tell(deployment, "ScalingReplicaSet", message)
