"""StatefulSets: pods with names, claims and an order."""

from __future__ import annotations

from functools import partial
from typing import Any

from kvestigate import errors
from kvestigate.client.cache import Key, key_of
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context, slow_start
from kvestigate.cluster.controllers.kinds import CLAIMS, PODS, REVISIONS, STATEFUL_SETS
from kvestigate.cluster.controllers.objects import StatefulSet, Template
from kvestigate.cluster.controllers.reconciler import PodOwner
from kvestigate.cluster.controllers.templates import pod_from
from kvestigate.cluster.controllers.workloads import revisions
from kvestigate.cluster.controllers.workloads.ordinals import (
    Decision,
    Revisions,
    decide,
    ordinal_of,
)
from kvestigate.cluster.controllers.workloads.revisions import HASH, History, record
from kvestigate.kube.views.pods import Pod

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def pod_of(stateful_set: StatefulSet, template: Template, ordinal: int, revision: str) -> Any:
    """The pod of an ordinal, with its identity and its claims."""
    name = f"{stateful_set.metadata.name}-{ordinal}"
    pod = pod_from(template, STATEFUL_SETS, stateful_set, name=name)
    labels = {POD_NAME: name, POD_INDEX: str(ordinal), HASH: revision}
    pod["metadata"]["labels"] |= labels
    spec = pod["spec"]
    spec["hostname"] = name
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    claimed = {
        claim["metadata"]["name"]: claim_name(stateful_set, claim, ordinal)
        for claim in stateful_set.spec.volume_claim_templates
    }
    others = [other for other in spec.get("volumes") or [] if other.get("name") not in claimed]
    volumes = [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
        for volume, claim in claimed.items()
    ]
    if volumes or others:
        spec["volumes"] = [*volumes, *others]
    return pod


def claim_name(stateful_set: StatefulSet, claim: dict[str, Any], ordinal: int) -> str:
    return f"{claim['metadata']['name']}-{stateful_set.metadata.name}-{ordinal}"


def claim_of(stateful_set: StatefulSet, template: dict[str, Any], ordinal: int) -> dict[str, Any]:
    """The claim that an ordinal keeps when its pod goes."""
    metadata = {
        **template["metadata"],
        "name": claim_name(stateful_set, template, ordinal),
        "namespace": stateful_set.metadata.namespace,
        "labels": {
            **(template["metadata"].get("labels") or {}),
            **(stateful_set.spec.selector.get("matchLabels") or {}),
        },
    }
    if stateful_set.spec.persistent_volume_claim_retention_policy.when_deleted == "Delete":
        metadata["ownerReferences"] = [_owner("apps/v1", "StatefulSet", stateful_set.metadata)]
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
    return {**body, "spec": template.get("spec") or {}}


def _owner(api_version: str, kind: str, metadata: Any) -> dict[str, str]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
    }


class StatefulSetController(PodOwner[StatefulSet]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, STATEFUL_SETS)
        self._revisions = context.cache(REVISIONS)
        self._claims = context.cache(CLAIMS)

    async def _reconcile(self, stateful_set: StatefulSet) -> float | None:
        candidates = [
            pod
            for pod in owners.candidates(self._pods, stateful_set)
            if owners.controller_of(pod) or ordinal_of(stateful_set, pod) is not None
        ]
        pods = await self._claim(stateful_set, candidates)
        history = await self._history(stateful_set)
        names = Revisions(stateful_set.status.current_revision or history.name, history.name)
        if names.current not in self._templates(history, stateful_set):
            names = Revisions(history.name, history.name)
        decision = decide(stateful_set, pods, names, self._context.now())
        await self._apply(stateful_set, decision, self._templates(history, stateful_set))
        await self._put_status(stateful_set, decision.status)
        live = {names.current, names.update, *(pod.metadata.labels.get(HASH, "") for pod in pods)}
        limit = stateful_set.spec.revision_history_limit
        for revision in revisions.to_forget(history.others, live, limit):
            await self._context.delete(REVISIONS, revision)
        return decision.pause

    def _templates(self, history: History, stateful_set: StatefulSet) -> dict[str, Template]:
        templates = {
            revision.metadata.name: revisions.template_in(revision) for revision in history.others
        }
        return {**templates, history.name: stateful_set.spec.template}

    async def _history(self, stateful_set: StatefulSet) -> History:
        known = self._revisions.find(owners.OWNER, stateful_set.metadata.uid)
        spec = stateful_set.spec
        history = revisions.history_of(
            STATEFUL_SETS,
            stateful_set,
            spec.template,
            spec.selector.get("matchLabels") or {},
            known,
            stateful_set.status.collision_count,
        )
        await record(self._context, history)
        return history

    async def _apply(
        self, stateful_set: StatefulSet, decision: Decision, templates: dict[str, Template]
    ) -> None:
        key = key_of(stateful_set)

        async def create(ordinal: int, revision: str) -> None:
            await self._create_claims(key, stateful_set, ordinal)
            pod = pod_of(stateful_set, templates[revision], ordinal, revision)
            await self._create(stateful_set, pod)

        await slow_start([partial(create, *creation) for creation in decision.create])
        for pod in decision.condemned:
            await self._pass_claims_on(key, stateful_set, pod)
        for pod in decision.delete:
            if await self._context.delete(PODS, pod):
                message = _outcome("Delete", stateful_set, pod.metadata.name, "successful")
                self._tell(stateful_set, "SuccessfulDelete", message)

    async def _create(self, stateful_set: StatefulSet, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        try:
            await self._context.create(PODS, pod)
        except errors.AlreadyExists:
            raise  # by somebody else's pod, or by ours that the cache has not seen
        except errors.KvestigateError as error:
            message = _outcome("Create", stateful_set, name, f"failed error: {error.message}")
            self._tell(stateful_set, "FailedCreate", message, WARNING)
            raise
        message = _outcome("Create", stateful_set, name, "successful")
        self._tell(stateful_set, "SuccessfulCreate", message)

    async def _create_claims(self, key: Key, stateful_set: StatefulSet, ordinal: int) -> None:
        for template in stateful_set.spec.volume_claim_templates:
            name = claim_name(stateful_set, template, ordinal)
            if self._claims.get(key.sibling(name)) is None:
                body = claim_of(stateful_set, template, ordinal)
                try:
                    await self._context.create(CLAIMS, body)
                except errors.AlreadyExists:
                    pass

    async def _pass_claims_on(self, key: Key, stateful_set: StatefulSet, pod: Pod) -> None:
        """Claims that a smaller set gives up go with their pod."""
        policy = stateful_set.spec.persistent_volume_claim_retention_policy
        if policy.when_scaled != "Delete":
            return
        ordinal = ordinal_of(stateful_set, pod)
        for template in stateful_set.spec.volume_claim_templates:
            claim = self._claims.get(key.sibling(claim_name(stateful_set, template, ordinal or 0)))
            if claim is not None:
                references = [_owner("v1", "Pod", pod.metadata)]
                patch = {"metadata": {"ownerReferences": references}}
                await self._context.patch(CLAIMS, claim, patch)


def _outcome(verb: str, stateful_set: StatefulSet, pod: str, result: str) -> str:
    return f"{verb} Pod {pod} in StatefulSet {stateful_set.metadata.name} {result}"
