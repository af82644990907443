"""HorizontalPodAutoscalers that cannot do their work. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from kvestigate.health.cluster import Cluster, condition, is_ready, subject_of
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube.views.meta import Condition
from kvestigate.render.human import listed, since_when
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import PodSpec
from kvestigate.snapshot.source import Listing
from kvestigate.snapshot.workloads import Autoscaler, Metric, ResourceMetric

_SCALABLE: dict[str, Listing[Any]] = {
    "Deployment": listings.DEPLOYMENTS,
    "StatefulSet": listings.STATEFUL_SETS,
    "ReplicaSet": listings.REPLICA_SETS,
    "ReplicationController": listings.REPLICATION_CONTROLLERS,
}
_LONG = timedelta(minutes=15)
"""A peak may last a while; longer than this, the maximum is too low."""
_NO_METRICS_YET = (
    "did not receive metrics for",
    "no metrics returned",
    "no pods returned by selector",
    "pods might be unready",
)
_METRICS_API = {
    "Resource": "v1beta1.metrics.k8s.io",
    "ContainerResource": "v1beta1.metrics.k8s.io",
    "Pods": "v1beta1.custom.metrics.k8s.io",
    "Object": "v1beta1.custom.metrics.k8s.io",
    "External": "v1beta1.external.metrics.k8s.io",
}


def _fault(scaler: Autoscaler, severity: Severity, evidence: str, why: str, **more: Any) -> Fault:
    meta = scaler.metadata
    return Fault(
        severity=severity,
        subject=subject_of("HorizontalPodAutoscaler", meta),
        evidence=evidence,
        why=why,
        command=f"kubectl -n {meta.namespace} describe hpa {meta.name}",
        **more,
    )


def _live(cluster: Cluster) -> Iterator[Autoscaler]:
    for scaler in cluster.of(listings.AUTOSCALERS):
        if scaler.metadata.deletion_timestamp is None:
            yield scaler


def _target(scaler: Autoscaler) -> Subject:
    reference = scaler.spec.scale_target_ref
    return Subject(reference.kind, reference.name, scaler.metadata.namespace)


def _lacks_target(cluster: Cluster, scaler: Autoscaler) -> bool:
    listing, target = _SCALABLE.get(_target(scaler).kind), _target(scaler)
    return listing is not None and cluster.lacks(listing, target.name, target.namespace)


@rule(
    "autoscaler-target",
    "A HorizontalPodAutoscaler cannot scale its target.",
    listings.AUTOSCALERS,
    uses=tuple(_SCALABLE.values()),
)
def cannot_scale(cluster: Cluster) -> Iterator[Fault]:
    for scaler in _live(cluster):
        target, able = _target(scaler), condition(scaler.status.conditions, "AbleToScale")
        if _lacks_target(cluster, scaler):
            yield _fault(
                scaler,
                Severity.CRITICAL,
                f"Its target {target} does not exist{_quoted(able)}.",
                "Nothing is scaled.",
                since=scaler.metadata.creation_timestamp,
            )
        elif able is not None and able.status == "False":
            yield _fault(
                scaler,
                Severity.CRITICAL,
                f"It cannot scale {target}{since_when(able.last_transition_time)}{_quoted(able)}.",
                "The number of replicas does not follow the load.",
                since=able.last_transition_time,
            )


def _quoted(told: Condition | None) -> str:
    """` (AbleToScale is False, FailedGetScale: ...)`"""
    if told is None or told.status == "True":
        return ""
    return f" ({told.type} is {told.status}, {told.reason}: {told.message})"


@rule(
    "autoscaler-metrics",
    "A HorizontalPodAutoscaler gets no metrics.",
    listings.AUTOSCALERS,
    uses=(*_SCALABLE.values(), listings.PODS, listings.API_SERVICES),
)
def without_metrics(cluster: Cluster) -> Iterator[Fault]:
    for scaler in _live(cluster):
        active = condition(scaler.status.conditions, "ScalingActive")
        if _lacks_target(cluster, scaler):
            continue
        unrequested = _without_request(cluster, scaler)
        inactive = (
            active is not None and active.status == "False" and active.reason != "ScalingDisabled"
        )
        if not unrequested and not inactive:
            continue
        begin = active.last_transition_time if inactive and active is not None else None
        pods = cluster.pods_of(_target(scaler))
        waiting = [subject_of("Pod", pod.metadata) for pod in pods if not is_ready(pod)]
        yield _fault(
            scaler,
            Severity.WARNING,
            f"It cannot compute the number of replicas{since_when(begin)}: "
            + " ".join(part for part in (unrequested, _said(active)) if part),
            "The number of replicas does not follow the load.",
            since=begin,
            causes=(*waiting, *_apis(scaler)) if not unrequested else (),
            only_as_effect=not unrequested and _may_pass(active) and not cluster.settled(begin),
        )


def _may_pass(active: Condition | None) -> bool:
    """The first metrics of new pods take a minute or two."""
    return active is None or any(part in active.message for part in _NO_METRICS_YET)


def _said(active: Condition | None) -> str:
    if active is None or active.status != "False":
        return ""
    return f"{active.reason}: {active.message}"


def _apis(scaler: Autoscaler) -> Iterator[Subject]:
    for metric in scaler.spec.metrics:
        if metric.type in _METRICS_API:
            yield Subject("APIService", _METRICS_API[metric.type])


def _without_request(cluster: Cluster, scaler: Autoscaler) -> str:
    """Which containers do not exist, or have no request that a utilization is a share of."""
    listing, target = _SCALABLE.get(_target(scaler).kind), _target(scaler)
    workload = cluster.find(listing, target.name, target.namespace) if listing else None
    if workload is None or not workload.spec.replicas:
        return ""
    spec: PodSpec = workload.spec.template.spec
    for metric in scaler.spec.metrics:
        source = _share_of_requests(metric)
        if source is None:
            continue
        names = [container.name for container in spec.containers]
        if source.container and source.container not in names:
            return f"{target} has no container {source.container}; it has {listed(names)}."
        bare = [
            container.name
            for container in spec.containers
            if source.name not in {*container.resources.requests, *container.resources.limits}
            and source.container in ("", container.name)
        ]
        if bare and spec.resources is None and not _defaulted(cluster, target, source.name):
            return (
                f"container {listed(bare)} of {target} has no {source.name} request, and the "
                f"target is a share of the {source.name} request."
            )
    return ""


def _share_of_requests(metric: Metric) -> ResourceMetric | None:
    source = metric.resource or metric.container_resource
    return source if source is not None and source.target.type == "Utilization" else None


def _defaulted(cluster: Cluster, target: Subject, resource: str) -> bool:
    """Whether running pods got the request from a LimitRange."""
    return any(
        all(resource in container.resources.requests for container in pod.spec.containers)
        for pod in cluster.pods_of(target)
    )


@rule(
    "autoscaler-limited",
    "A HorizontalPodAutoscaler has been at its maximum for long.",
    listings.AUTOSCALERS,
)
def at_maximum(cluster: Cluster) -> Iterator[Fault]:
    for scaler in _live(cluster):
        limited = condition(scaler.status.conditions, "ScalingLimited")
        if limited is None or limited.status != "True" or limited.reason != "TooManyReplicas":
            continue
        most, begin = scaler.spec.max_replicas, limited.last_transition_time
        if scaler.status.current_replicas >= most and cluster.settled(begin, _LONG):
            yield _fault(
                scaler,
                Severity.WARNING,
                f"It wants more than its maximum of {most} replicas{since_when(begin)} "
                f"({limited.reason}: {limited.message}).",
                f"{_target(scaler)} cannot follow the load any further.",
                since=begin,
            )


@rule(
    "autoscalers-conflict",
    "Two HorizontalPodAutoscalers scale the same target.",
    listings.AUTOSCALERS,
)
def conflicting(cluster: Cluster) -> Iterator[Fault]:
    by_target: dict[Subject, list[Autoscaler]] = {}
    for scaler in _live(cluster):
        by_target.setdefault(_target(scaler), []).append(scaler)
    for target, scalers in by_target.items():
        for scaler in scalers if len(scalers) > 1 else ():
            others = sorted(other.metadata.name for other in scalers if other is not scaler)
            yield _fault(
                scaler,
                Severity.WARNING,
                f"It scales {target}, and so does HorizontalPodAutoscaler {listed(others)} "
                f"(AmbiguousSelector).",
                "Two autoscalers set different numbers of replicas in turn, or both stop.",
            )


@rule(
    "autoscaler-short",
    "The target of a HorizontalPodAutoscaler has fewer pods than the minimum.",
    listings.AUTOSCALERS,
    uses=tuple(_SCALABLE.values()),
)
def below_minimum(cluster: Cluster) -> Iterator[Fault]:
    """A target at 0 is switched off on purpose: the autoscaler leaves it alone."""
    for scaler in _live(cluster):
        now, least = scaler.status.current_replicas, scaler.spec.min_replicas
        able = condition(scaler.status.conditions, "AbleToScale")
        broken = able is not None and able.status == "False"
        created = scaler.metadata.creation_timestamp
        if not 0 < now < least or broken or not cluster.settled(created):
            continue
        if cluster.settled(scaler.status.last_scale_time or created):
            yield _fault(
                scaler,
                Severity.WARNING,
                f"{_target(scaler)} has {now} replicas, fewer than the minimum of {least}.",
                "The autoscaler does not reach its minimum: it is not running, or something "
                "else sets the number of replicas.",
                causes=(_target(scaler),),
            )


@rule(
    "autoscaler-disabled",
    "The target of a HorizontalPodAutoscaler is scaled to 0.",
    listings.AUTOSCALERS,
)
def disabled(cluster: Cluster) -> Iterator[Fault]:
    for scaler in _live(cluster):
        active = condition(scaler.status.conditions, "ScalingActive")
        if active is None or active.status != "False" or active.reason != "ScalingDisabled":
            continue
        if scaler.spec.min_replicas > 0:
            yield _fault(
                scaler,
                Severity.INFO,
                f"{_target(scaler)} has 0 replicas{since_when(active.last_transition_time)} "
                f"({active.reason}: {active.message}).",
                "The autoscaler does not scale the target up until somebody sets its replicas to 1 "
                "or more.",
                since=active.last_transition_time,
            )


RULES = (cannot_scale, without_metrics, at_maximum, conflicting, below_minimum, disabled)
