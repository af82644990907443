"""HorizontalPodAutoscalers: set the size of workloads by their load."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.cache import Change, Key
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
from kvestigate.cluster.controllers.objects import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
)
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


class AutoscalerController:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._scalers = context.watch(AUTOSCALERS, self._changed)
        self._pods = context.cache(PODS)
        self._past: dict[Key, Past] = {}

    def _changed(self, change: Change[HorizontalPodAutoscaler]) -> tuple[Key, ...]:
        if change.new is None:
            self._past.pop(change.key, None)
        elif change.old is not None and change.old.spec == change.new.spec:
            return ()  # our own status: the next look has its time
        return (change.key,)

    async def reconcile(self, key: Key) -> float | None:
        scaler = self._scalers.get(key)
        if scaler is None or scaler.metadata.deletion_timestamp is not None:
            return None
        resource = _target(scaler)
        try:
            scale = await self._context.api.get(
                resource,
                scaler.spec.scale_target_ref.name,
                namespace=key.namespace,
                subresource="scale",
            )
        except errors.ApiError as error:
            self._warn(scaler, "FailedGetScale", error.message)
            message = (
                f"the HPA controller was unable to get the target's current scale: {error.message}"
            )
            status = self._noted(scaler, "AbleToScale", "False", "FailedGetScale", message)
            await self._context.put_status(AUTOSCALERS, scaler, status)
            return PERIOD
        status = await self._look(key, scaler, resource, scale)
        await self._context.put_status(AUTOSCALERS, scaler, status)
        return PERIOD

    async def _look(
        self, key: Key, scaler: HorizontalPodAutoscaler, resource: Resource, scale: dict[str, Any]
    ) -> HorizontalPodAutoscalerStatus:
        current = int(scale["spec"].get("replicas") or 0)
        message = "the HPA controller was able to get the target's current scale"
        status = self._noted(scaler, "AbleToScale", "True", "SucceededGetScale", message)
        status = msgspec.structs.replace(status, current_replicas=current, current_metrics=())
        past = self._past.setdefault(key, Past([(self._context.now(), current)]))
        spec = scaler.spec
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            status = self._put(status, "ScalingActive", "False", "ScalingDisabled", message)
            return msgspec.structs.replace(status, desired_replicas=0)
        if current > spec.max_replicas:
            wanted, why = spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
        elif current < spec.min_replicas:
            wanted, why = spec.min_replicas, "Current number of replicas below Spec.MinReplicas"
        else:
            proposal = await self._proposal(key, scaler, scale, current)
            status = msgspec.structs.replace(status, current_metrics=proposal.metrics)
            for unread in proposal.unread:
                self._warn(scaler, unread.reason, str(unread))
            if proposal.replicas is None:
                return self._at_a_loss(scaler, proposal, status)
            return await self._follow(key, scaler, resource, current, proposal, past, status)
        return await self._resize(key, scaler, resource, current, wanted, why, past, status)

    def _at_a_loss(
        self,
        scaler: HorizontalPodAutoscaler,
        proposal: Proposal,
        status: HorizontalPodAutoscalerStatus,
    ) -> HorizontalPodAutoscalerStatus:
        first = proposal.unread[0]
        count = f"{len(proposal.unread)} invalid out of {len(proposal.metrics)}"
        summary = f"invalid metrics ({count}), first error is: {first.attempt}: {first}"
        self._warn(scaler, "FailedComputeMetricsReplicas", summary)
        message = f"the HPA was unable to compute the replica count: {first}"
        return self._put(status, "ScalingActive", "False", first.reason, message)

    async def _follow(
        self,
        key: Key,
        scaler: HorizontalPodAutoscaler,
        resource: Resource,
        current: int,
        proposal: Proposal,
        past: Past,
        status: HorizontalPodAutoscalerStatus,
    ) -> HorizontalPodAutoscalerStatus:
        assert proposal.replicas is not None
        message = (
            f"the HPA was able to successfully calculate a replica count from {proposal.because}"
        )
        status = self._put(status, "ScalingActive", "True", "ValidMetricFound", message)
        verdict = limited(scaler, current, proposal.replicas, past, self._context.now())
        able = verdict.stabilised or "ReadyForNewScale"
        status = self._put(status, "AbleToScale", "True", able, _ABLE[able])
        held = "True" if verdict.limit else "False"
        reason = verdict.limit or "DesiredWithinRange"
        status = self._put(status, "ScalingLimited", held, reason, _LIMITS[verdict.limit])
        above = f"{proposal.because} above target"
        why = above if proposal.replicas > current else "All metrics below target"
        return await self._resize(key, scaler, resource, current, verdict.size, why, past, status)

    async def _resize(
        self,
        key: Key,
        scaler: HorizontalPodAutoscaler,
        resource: Resource,
        current: int,
        size: int,
        why: str,
        past: Past,
        status: HorizontalPodAutoscalerStatus,
    ) -> HorizontalPodAutoscalerStatus:
        if size == current:
            return msgspec.structs.replace(status, desired_replicas=size)
        now = self._context.now()
        name = scaler.spec.scale_target_ref.name
        try:
            await self._context.api.scale(resource, name, size, namespace=key.namespace)
        except errors.ApiError as error:
            failure = f"New size: {size}; reason: {why}; error: {error.message}"
            self._warn(scaler, "FailedRescale", failure)
            message = f"the HPA controller was unable to update the target scale: {error.message}"
            return self._put(status, "AbleToScale", "False", "FailedUpdateScale", message)
        past.steps = [step for step in past.steps if step[0] > now - 1800]
        past.steps.append((now, size - current))
        message = f"New size: {size}; reason: {why}"
        self._context.tell(AUTOSCALERS, scaler, "SuccessfulRescale", message)
        message = f"the HPA controller was able to update the target scale to {size}"
        status = self._put(status, "AbleToScale", "True", "SucceededRescale", message)
        return msgspec.structs.replace(status, desired_replicas=size, last_scale_time=stamp(now))

    async def _proposal(
        self, key: Key, scaler: HorizontalPodAutoscaler, scale: dict[str, Any], current: int
    ) -> Proposal:
        labels = (scale.get("status") or {}).get("selector") or ""
        usage, silence = await self._usage(key, labels)
        selector = parse_labels(labels)
        pods = [
            pod
            for pod in self._pods.find(owners.NAMESPACE, key.namespace)
            if labels and selector.matches(pod.metadata.labels)
        ]
        seen = Seen(self._context.now(), current, pods, usage, silence)
        tolerance = Tolerance.of(scaler.spec.behavior)
        return propose(scaler.spec.metrics or (DEFAULT,), seen, tolerance)

    async def _usage(self, key: Key, labels: str) -> tuple[Usage, str]:
        """What pods use, or why that is unknown."""
        try:
            page = await self._context.api.list(
                builtins.POD_METRICS, Selection(key.namespace, labels=labels), type=PodMetrics
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
        self._context.tell(AUTOSCALERS, scaler, reason, message, WARNING)

    def _noted(
        self,
        scaler: HorizontalPodAutoscaler,
        type: str,
        status: str,
        reason: str,
        message: str,
    ) -> HorizontalPodAutoscalerStatus:
        generation = scaler.metadata.generation or None
        seen = msgspec.structs.replace(scaler.status, observed_generation=generation)
        return self._put(seen, type, status, reason, message)

    def _put(
        self,
        into: HorizontalPodAutoscalerStatus,
        type: str,
        status: str,
        reason: str,
        message: str,
    ) -> HorizontalPodAutoscalerStatus:
        new = Condition(type, status, reason, message, stamp(self._context.now()))
        put = sorted(conditions.put(into.conditions, new), key=lambda condition: condition.type)
        return msgspec.structs.replace(into, conditions=tuple(put))


def _target(scaler: HorizontalPodAutoscaler) -> Resource:
    target = scaler.spec.scale_target_ref
    resource = builtins.registry().for_kind(target.api_version, target.kind)
    if resource is not None:
        return resource
    group, _, version = target.api_version.rpartition("/")
    return Resource(group, version, f"{target.kind.lower()}s", target.kind)
