"""HorizontalPodAutoscalers: set the size of workloads by their load."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.cache import Change, Key, key_of
from kvestigate.client.call import Selection
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.autoscaling.metrics import (
    DEFAULT,
    NONE_TOLD,
    Proposal,
    Seen,
    Tolerance,
    Usage,
    propose,
)
from kvestigate.cluster.controllers.autoscaling.scaling import Past, limited
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import AUTOSCALERS, PODS
from kvestigate.cluster.controllers.objects import HorizontalPodAutoscaler
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.cluster.controllers.times import stamp
from kvestigate.kube import builtins
from kvestigate.kube.quantities import parse
from kvestigate.kube.resources import Resource
from kvestigate.kube.selectors import parse_labels
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.metrics import PodMetrics

PERIOD = 15.0

_ABLE = {
    "ReadyForNewScale": "recommended size matches current size",
    "ScaleDownStabilized": "recent recommendations were higher than current one, "
    "applying the highest recent recommendation",
    "ScaleUpStabilized": "recent recommendations were lower than current one, "
    "applying the lowest recent recommendation",
}
_NO_METRICS = "the server could not find the requested resource (get pods.metrics.k8s.io)"
_LIMITS = {
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
    "": "the desired count is within the acceptable range",
}


class _Draft:
    """The status that is being written."""

    def __init__(self, scaler: HorizontalPodAutoscaler, now: float) -> None:
        generation = scaler.metadata.generation or None
        self.status = msgspec.structs.replace(scaler.status, observed_generation=generation)
        self._now = now

    def set(self, **fields: Any) -> None:
        self.status = msgspec.structs.replace(self.status, **fields)

    def put(self, type: str, status: str, reason: str, message: str) -> None:
        """Set a condition."""
        new = Condition(type, status, reason, message, stamp(self._now))
        present = conditions.put(self.status.conditions, new)
        self.set(conditions=tuple(sorted(present, key=lambda condition: condition.type)))


class AutoscalerController(Reconciler[HorizontalPodAutoscaler]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, AUTOSCALERS, self._changed)
        self._pods = context.cache(PODS)
        self._past: dict[Key, Past] = {}

    def _changed(self, change: Change[HorizontalPodAutoscaler]) -> tuple[Key, ...]:
        if change.new is None:
            self._past.pop(change.key, None)
        elif change.old is not None and change.old.spec == change.new.spec:
            return ()  # our own status: the next look has its time
        return (change.key,)

    async def _reconcile(self, scaler: HorizontalPodAutoscaler) -> float | None:
        if scaler.metadata.deletion_timestamp is not None:
            return None
        draft = _Draft(scaler, self._context.now())
        await self._look(scaler, draft)
        await self._put_status(scaler, draft.status)
        return PERIOD

    async def _look(self, scaler: HorizontalPodAutoscaler, draft: _Draft) -> None:
        spec, resource = scaler.spec, _target(scaler)
        name, namespace = spec.scale_target_ref.name, scaler.metadata.namespace
        try:
            scale = await self._context.api.get(
                resource, name, namespace=namespace, subresource="scale"
            )
        except errors.ApiError as error:
            self._warn(scaler, "FailedGetScale", error.message)
            message = "the HPA controller was unable to get the target's current scale"
            draft.put("AbleToScale", "False", "FailedGetScale", f"{message}: {error.message}")
            return
        current = int(scale["spec"].get("replicas") or 0)
        message = "the HPA controller was able to get the target's current scale"
        draft.put("AbleToScale", "True", "SucceededGetScale", message)
        draft.set(current_replicas=current, current_metrics=())
        past = self._past.setdefault(key_of(scaler), Past([(self._context.now(), current)]))
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            draft.put("ScalingActive", "False", "ScalingDisabled", message)
            draft.set(desired_replicas=0)
            return
        if current > spec.max_replicas:
            size, why = spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
        elif current < spec.min_replicas:
            size, why = spec.min_replicas, "Current number of replicas below Spec.MinReplicas"
        else:
            proposal = await self._proposal(scaler, scale, current)
            draft.set(current_metrics=proposal.metrics)
            for unread in proposal.unread:
                self._warn(scaler, unread.reason, str(unread))
            if proposal.replicas is None:
                self._give_up(scaler, proposal, draft)
                return
            size = self._limited(scaler, current, proposal.replicas, proposal.because, past, draft)
            above = f"{proposal.because} above target"
            why = above if proposal.replicas > current else "All metrics below target"
        if size == current:
            draft.set(desired_replicas=size)
        elif await self._resize(scaler, resource, size, why, draft):
            now = self._context.now()
            past.steps = [step for step in past.steps if step[0] > now - 1800]
            past.steps.append((now, size - current))

    def _give_up(self, scaler: HorizontalPodAutoscaler, proposal: Proposal, draft: _Draft) -> None:
        first = proposal.unread[0]
        count = f"{len(proposal.unread)} invalid out of {len(proposal.metrics)}"
        summary = f"invalid metrics ({count}), first error is: {first.attempt}: {first}"
        self._warn(scaler, "FailedComputeMetricsReplicas", summary)
        message = f"the HPA was unable to compute the replica count: {first}"
        draft.put("ScalingActive", "False", first.reason, message)

    def _limited(
        self,
        scaler: HorizontalPodAutoscaler,
        current: int,
        wished: int,
        because: str,
        past: Past,
        draft: _Draft,
    ) -> int:
        message = f"the HPA was able to successfully calculate a replica count from {because}"
        draft.put("ScalingActive", "True", "ValidMetricFound", message)
        verdict = limited(scaler, current, wished, past, self._context.now())
        able = verdict.stabilised or "ReadyForNewScale"
        draft.put("AbleToScale", "True", able, _ABLE[able])
        held = "True" if verdict.limit else "False"
        reason = verdict.limit or "DesiredWithinRange"
        draft.put("ScalingLimited", held, reason, _LIMITS[verdict.limit])
        return verdict.size

    async def _resize(
        self,
        scaler: HorizontalPodAutoscaler,
        resource: Resource,
        size: int,
        why: str,
        draft: _Draft,
    ) -> bool:
        """Whether the target could be resized."""
        name, namespace = scaler.spec.scale_target_ref.name, scaler.metadata.namespace
        try:
            await self._context.api.scale(resource, name, size, namespace=namespace)
        except errors.ApiError as error:
            failure = f"New size: {size}; reason: {why}; error: {error.message}"
            self._warn(scaler, "FailedRescale", failure)
            message = f"the HPA controller was unable to update the target scale: {error.message}"
            draft.put("AbleToScale", "False", "FailedUpdateScale", message)
            return False
        self._tell(scaler, "SuccessfulRescale", f"New size: {size}; reason: {why}")
        message = f"the HPA controller was able to update the target scale to {size}"
        draft.put("AbleToScale", "True", "SucceededRescale", message)
        draft.set(desired_replicas=size, last_scale_time=stamp(self._context.now()))
        return True

    async def _proposal(
        self, scaler: HorizontalPodAutoscaler, scale: dict[str, Any], current: int
    ) -> Proposal:
        namespace = scaler.metadata.namespace
        labels = (scale.get("status") or {}).get("selector") or ""
        usage, silence = await self._usage(namespace, labels)
        selector = parse_labels(labels)
        pods = [
            pod
            for pod in self._pods.find(owners.NAMESPACE, namespace)
            if labels and selector.matches(pod.metadata.labels)
        ]
        seen = Seen(self._context.now(), current, pods, usage, silence)
        tolerance = Tolerance.of(scaler.spec.behavior)
        return propose(scaler.spec.metrics or (DEFAULT,), seen, tolerance)

    async def _usage(self, namespace: str, labels: str) -> tuple[Usage, str]:
        """What pods use, or why that is unknown."""
        try:
            page = await self._context.api.list(
                builtins.POD_METRICS, Selection(namespace, labels=labels), type=PodMetrics
            )
        except errors.ApiError as error:
            why = _NO_METRICS if isinstance(error, errors.NotFound) else error.message
            return {}, f"unable to fetch metrics from resource metrics API: {why}"
        usage = {
            metrics.metadata.name: {
                container.name: {name: parse(amount) for name, amount in container.usage.items()}
                for container in metrics.containers
            }
            for metrics in page.items
        }
        return usage, NONE_TOLD

    def _warn(self, scaler: HorizontalPodAutoscaler, reason: str, message: str) -> None:
        self._tell(scaler, reason, message, WARNING)


def _target(scaler: HorizontalPodAutoscaler) -> Resource:
    target = scaler.spec.scale_target_ref
    resource = builtins.registry().for_kind(target.api_version, target.kind)
    if resource is not None:
        return resource
    group, _, version = target.api_version.rpartition("/")
    return Resource(group, version, f"{target.kind.lower()}s", target.kind)
