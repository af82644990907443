"""What an object needs to do its work: its pods, its volumes, what it refers to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kvestigate.health.cluster import Cluster, as_selector, subject_of
from kvestigate.health.model import Subject
from kvestigate.health.references import references
from kvestigate.kube.views.meta import LabelSelector
from kvestigate.snapshot import listings
from kvestigate.snapshot.pods import Pod

Neighbours = Iterator[Subject]


def dependencies(cluster: Cluster, subject: Subject) -> tuple[Subject, ...]:
    """The objects that it needs, whether they exist or not, each once."""
    if subject.kind in _WITH_PODS:
        pods = (pod for pod in cluster.pods_of(subject) if pod.status.phase != "Succeeded")
        return tuple(_subject(pod) for pod in pods)
    found = _NEEDS.get(subject.kind)
    item = cluster.object(subject)
    if found is None or item is None:
        return ()
    return tuple(dict.fromkeys(found(cluster, item)))


def _pod(cluster: Cluster, pod: Pod) -> Neighbours:
    if pod.spec.node_name:
        yield Subject("Node", pod.spec.node_name)
    for reference in references(pod.spec, pod.metadata.namespace):
        yield reference.subject


def _service(cluster: Cluster, service: Any) -> Neighbours:
    if service.spec.selector:
        selector = as_selector(LabelSelector(service.spec.selector))
        for pod in cluster.selected(selector, service.metadata.namespace):
            yield cluster.workload(pod)


def _ingress(cluster: Cluster, ingress: Any) -> Neighbours:
    spec, namespace = ingress.spec, ingress.metadata.namespace
    if spec.ingress_class_name:
        yield Subject("IngressClass", spec.ingress_class_name)
    for tls in spec.tls:
        if tls.secret_name:
            yield Subject("Secret", tls.secret_name, namespace)
    backends = [path.backend for rule in spec.rules for path in rule.http.paths]
    for backend in (spec.default_backend, *backends):
        if backend is not None and backend.service is not None:
            yield Subject("Service", backend.service.name, namespace)


def _claim(cluster: Cluster, claim: Any) -> Neighbours:
    if claim.spec.volume_name:
        yield Subject("PersistentVolume", claim.spec.volume_name)
    if claim.spec.storage_class_name:
        yield Subject("StorageClass", claim.spec.storage_class_name)


def _autoscaler(cluster: Cluster, autoscaler: Any) -> Neighbours:
    target = autoscaler.spec.scale_target_ref
    yield Subject(target.kind, target.name, autoscaler.metadata.namespace)


def _budget(cluster: Cluster, budget: Any) -> Neighbours:
    selector = as_selector(budget.spec.selector)
    for pod in cluster.selected(selector, budget.metadata.namespace):
        yield cluster.workload(pod)


def _cron_job(cluster: Cluster, cron_job: Any) -> Neighbours:
    for job in cluster.of(listings.JOBS):
        for owner in job.metadata.owner_references:
            if (owner.kind, owner.name) == ("CronJob", cron_job.metadata.name) and (
                job.metadata.namespace == cron_job.metadata.namespace
            ):
                yield subject_of("Job", job.metadata)


def _api_service(cluster: Cluster, api_service: Any) -> Neighbours:
    service = api_service.spec.service
    if service is not None:
        yield Subject("Service", service.name, service.namespace)


def _webhooks(cluster: Cluster, configuration: Any) -> Neighbours:
    for webhook in configuration.webhooks:
        service = webhook.client_config.service
        if service is not None:
            yield Subject("Service", service.name, service.namespace)


def _subject(pod: Pod) -> Subject:
    return Subject("Pod", pod.metadata.name, pod.metadata.namespace)


_WITH_PODS = {
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "ReplicationController",
    "Job",
}
_NEEDS: dict[str, Callable[[Cluster, Any], Neighbours]] = {
    "Pod": _pod,
    "Service": _service,
    "Ingress": _ingress,
    "PersistentVolumeClaim": _claim,
    "HorizontalPodAutoscaler": _autoscaler,
    "PodDisruptionBudget": _budget,
    "CronJob": _cron_job,
    "APIService": _api_service,
    "ValidatingWebhookConfiguration": _webhooks,
    "MutatingWebhookConfiguration": _webhooks,
}
