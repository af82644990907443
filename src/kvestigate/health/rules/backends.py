"""Programs that the API server calls: webhooks and aggregated APIs behind a Service. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.health.cluster import Cluster, subject_of
from kvestigate.health.model import Subject
from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.network import Service
from kvestigate.render.human import counted
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import ServiceReference, WebhookClient
from kvestigate.snapshot.pods import Pod
from kvestigate.snapshot.source import Source

BACKENDS: tuple[Source[Any], ...] = (
    listings.SERVICES,
    listings.ENDPOINT_SLICES,
    listings.PODS,
    listings.NAMESPACES,
)
"""What `unanswered` and `causes_of` look at."""
_IN_CLUSTER = re.compile(
    r"https://([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.svc(?:\.[a-z0-9.-]{1,253})?(?::(\d{1,5}))?(?:/|$)"
)


def backend_of(client: WebhookClient) -> ServiceReference | None:
    """The Service that is called; None if it is outside the cluster."""
    if client.service is not None:
        return client.service
    found = _IN_CLUSTER.match(client.url)
    if found is None:
        return None
    return ServiceReference(found[2], found[1], int(found[3] or 443))


def unanswered(cluster: Cluster, backend: ServiceReference) -> str:
    """Why the Service does not answer; empty if it may, or if that is unknown."""
    name, namespace = backend.name, backend.namespace
    if cluster.lacks(listings.NAMESPACES, namespace):
        return f"namespace {namespace} does not exist"
    if cluster.lacks(listings.SERVICES, name, namespace):
        return f"Service {namespace}/{name} does not exist"
    service = cluster.find(listings.SERVICES, name, namespace)
    if service is None or service.spec.type == "ExternalName":
        return ""
    ports = [port.port for port in service.spec.ports]
    if backend.port not in ports:
        have = ", ".join(map(str, ports)) or "none"
        return f"Service {namespace}/{name} has no port {backend.port} (it has {have})"
    if not cluster.knows(listings.ENDPOINT_SLICES) or cluster.ready_endpoints(name, namespace):
        return ""
    pods = _pods(cluster, service)
    if service.spec.selector and not pods:
        return f"Service {namespace}/{name} has no endpoints: no pod matches its selector"
    if any(_is_starting(cluster, pod) for pod in pods):
        return ""
    count = counted(len(pods), "pod")
    return f"Service {namespace}/{name} has no ready endpoints: 0 of {count} ready"


def causes_of(cluster: Cluster, backend: ServiceReference) -> tuple[Subject, ...]:
    """The Service and its pods: if one of them has a fault, that is the cause."""
    own = Subject("Service", backend.name, backend.namespace)
    service = cluster.find(listings.SERVICES, backend.name, backend.namespace)
    pods = _pods(cluster, service) if service is not None else ()
    return (own, *(subject_of("Pod", pod.metadata) for pod in pods))


def _pods(cluster: Cluster, service: Service) -> tuple[Pod, ...]:
    if not service.spec.selector:
        return ()
    selector = from_label_selector({"matchLabels": service.spec.selector})
    return cluster.selected(selector, service.metadata.namespace)


def _is_starting(cluster: Cluster, pod: Pod) -> bool:
    born = pod.metadata.creation_timestamp
    troubled = any(
        status.state.waiting is not None and status.state.waiting.reason.endswith("BackOff")
        for status in pod.status.all_statuses
    )
    return born is not None and not cluster.settled(born) and not troubled
