"""HorizontalPodAutoscalers: as many pods as the load asks for."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate import errors
from kvestigate.client.call import Selection
from kvestigate.client.recorder import WARNING
from kvestigate.controllers import conditions, owners
from kvestigate.controllers.cache import Change, Key
from kvestigate.controllers.context import Context
from kvestigate.controllers.kinds import AUTOSCALERS, PODS
from kvestigate.controllers.scaling import Past, Proposal, Usage, limited, propose
from kvestigate.controllers.times import stamp
from kvestigate.controllers.views import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
    MetricTarget,
    ResourceMetric,
)
from kvestigate.kube import builtins
from kvestigate.kube.quantities import ZERO, Quantity, parse
from kvestigate.kube.resources import Resource
from kvestigate.kube.selectors import parse_labels
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.metrics import PodMetrics

PERIOD = 15.0

_CPU = ResourceMetric("cpu", MetricTarget("Utilization", average_utilization=80))
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
        owners.index_owners(self._pods)
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
            scale = await self._context.api(key.plane).get(
                resource,
                scaler.spec.scale_target_ref.name,
                namespace=key.namespace,
                subresource="scale",
            )
        except errors.ApiError as error:
            status = self._noted(scaler, "AbleToScale", "False", "FailedGetScale", error.message)
            await self._context.put_status(AUTOSCALERS, key.plane, scaler, status)
            return PERIOD
        await self._scale(key, scaler, resource, scale)
        return PERIOD

    async def _scale(
        self, key: Key, scaler: HorizontalPodAutoscaler, resource: Resource, scale: dict[str, Any]
    ) -> None:
        current = int(scale["spec"].get("replicas") or 0)
        message = "the HPA controller was able to get the target's current scale"
        status = self._noted(scaler, "AbleToScale", "True", "SucceededGetScale", message)
        status = msgspec.structs.replace(status, current_replicas=current)
        if current == 0:
            message = "scaling is disabled since the replica count of the target is zero"
            status = self._put(status, "ScalingActive", "False", "ScalingDisabled", message)
        else:
            proposal = await self._proposal(key, scaler, scale, current)
            if proposal is None:
                message = "no metrics could be read of the target's pods"
                self._context.tell(
                    key.plane, AUTOSCALERS, scaler, "FailedGetResourceMetric", message, WARNING
                )
                status = self._put(
                    status, "ScalingActive", "False", "FailedGetResourceMetric", message
                )
            else:
                status = await self._follow(key, scaler, resource, current, proposal, status)
        await self._context.put_status(AUTOSCALERS, key.plane, scaler, status)

    async def _follow(
        self,
        key: Key,
        scaler: HorizontalPodAutoscaler,
        resource: Resource,
        current: int,
        proposal: Proposal,
        status: HorizontalPodAutoscalerStatus,
    ) -> HorizontalPodAutoscalerStatus:
        now = self._context.now()
        past = self._past.setdefault(key, Past())
        size, limit = limited(scaler, current, proposal.replicas, past, now)
        message = "the HPA was able to successfully calculate a replica count"
        status = self._put(status, "ScalingActive", "True", "ValidMetricFound", message)
        reason = limit or "DesiredWithinRange"
        held = "True" if limit else "False"
        status = self._put(status, "ScalingLimited", held, reason, _LIMITS[limit])
        status = msgspec.structs.replace(
            status, desired_replicas=size, current_metrics=proposal.metrics
        )
        if size == current:
            return status
        name = scaler.spec.scale_target_ref.name
        await self._context.api(key.plane).scale(resource, name, size, namespace=key.namespace)
        past.steps = [each for each in past.steps if each[0] > now - 1800]
        past.steps.append((now, size - current))
        message = f"New size: {size}; reason: resource metrics"
        self._context.tell(key.plane, AUTOSCALERS, scaler, "SuccessfulRescale", message)
        return msgspec.structs.replace(status, last_scale_time=stamp(now))

    async def _proposal(
        self, key: Key, scaler: HorizontalPodAutoscaler, scale: dict[str, Any], current: int
    ) -> Proposal | None:
        labels = (scale.get("status") or {}).get("selector") or ""
        metrics = [it.resource for it in scaler.spec.metrics if it.resource is not None]
        usage = await self._usage(key, labels)
        selector = parse_labels(labels)
        pods = [
            pod
            for pod in self._pods.find(owners.NAMESPACE, key.plane, key.namespace)
            if labels and selector.matches(pod.metadata.labels)
        ]
        return propose(metrics or [_CPU], current, pods, usage)

    async def _usage(self, key: Key, labels: str) -> Usage:
        try:
            page = await self._context.api(key.plane).list(
                builtins.POD_METRICS, Selection(key.namespace, labels=labels), type=PodMetrics
            )
        except errors.ApiError:
            return {}  # there is no metrics server, or it does not answer
        found: dict[str, dict[str, Quantity]] = {}
        for metrics in page.items:
            total = found.setdefault(metrics.metadata.name, {})
            for container in metrics.containers:
                for name, amount in container.usage.items():
                    total[name] = total.get(name, ZERO) + parse(amount)
        return found

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
        return msgspec.structs.replace(into, conditions=conditions.put(into.conditions, new))


def _target(scaler: HorizontalPodAutoscaler) -> Resource:
    target = scaler.spec.scale_target_ref
    found = builtins.registry().for_kind(target.api_version, target.kind)
    if found is not None:
        return found
    group, _, version = target.api_version.rpartition("/")
    return Resource(group, version, f"{target.kind.lower()}s", target.kind)
