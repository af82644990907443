"""An object as facts and tables, without the values of Secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from kvestigate.inspection import workloads
from kvestigate.inspection.any_object import facts_of_anything
from kvestigate.inspection.containers import container_sections
from kvestigate.inspection.pod_status import ready_of, status_of
from kvestigate.inspection.sections import Parts, Section, conditions, pairs, seen_as
from kvestigate.kube.quantities import NANO, Notation, Quantity
from kvestigate.kube.requests import CPU
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Event, Node
from kvestigate.kube.views.network import Service
from kvestigate.kube.views.pods import Pod as WholePod
from kvestigate.render.blocks import Block, Column, Facts, Table, Tone, text
from kvestigate.render.human import age
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import requested_by_node
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.pods import Pod

T = TypeVar("T")

_NVIDIA = "nvidia.com/"


@dataclass(frozen=True, slots=True)
class Description:
    kind: str
    namespace: str
    name: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...] = ()

    def with_section(self, section: Section) -> Description:
        return replace(self, sections=(*self.sections, section))


def describe(resource: Resource, body: dict[str, Any], related: Snapshot) -> Description:
    """`body` is the server's object; `related` has the other objects that its kind needs."""
    metadata = body["metadata"]
    special = _KINDS.get((resource.group, resource.plural))
    if special is not None:
        facts, sections = special(body, related)
    elif resource.group in ("apps", "batch") and resource.kind in workloads.KINDS:
        facts, sections = workloads.workload(resource.kind, body, related)
    else:
        facts, sections = facts_of_anything(resource, body), []
    return Description(
        kind=resource.kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        facts=(*_identity(metadata), *facts),
        sections=tuple(section for section in sections if section.rows),
    )


def blocks(described: Description) -> Sequence[Block]:
    made: list[Block] = [Facts(described.facts)]
    for section in described.sections:
        made.append(text(section.title, Tone.STRONG))
        made.append(Table([Column(column) for column in section.columns], section.rows))
    return made


def events_section(events: Iterable[Event], now: datetime) -> Section | None:
    """A table of the events, oldest first; None if there are none."""
    ordered = sorted(events, key=_happened)
    if not ordered:
        return None
    rows = tuple(
        (
            age((now - _happened(event)).total_seconds()),
            event.type,
            event.reason,
            _times(event),
            event.message,
        )
        for event in ordered
    )
    return Section("Events", ("age", "type", "reason", "count", "message"), rows)


def _happened(event: Event) -> datetime:
    series = event.series.last_observed_time if event.series else None
    return (
        series
        or event.last_timestamp
        or event.event_time
        or event.first_timestamp
        or event.metadata.creation_timestamp
        or datetime.min.replace(tzinfo=UTC)
    )


def _times(event: Event) -> str:
    return str(event.series.count if event.series else event.count or 1)


def _identity(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("name", metadata["name"])]
    if metadata.get("namespace"):
        facts.append(("namespace", metadata["namespace"]))
    facts.append(("created", str(metadata.get("creationTimestamp") or "-")))
    if metadata.get("deletionTimestamp"):
        facts.append(("deleted at", str(metadata["deletionTimestamp"])))
    owners = metadata.get("ownerReferences") or ()
    facts += [("owned by", f"{owner['kind']}/{owner['name']}") for owner in owners]
    return facts


def _pod(body: dict[str, Any], related: Snapshot) -> Parts:
    pod = seen_as(body, WholePod)
    brief = seen_as(body, Pod)
    ready, wanted = ready_of(brief)
    facts = [
        ("status", status_of(brief)),
        ("ready", f"{ready}/{wanted}"),
        ("node", pod.spec.node_name or "(not scheduled)"),
        ("ip", pod.status.pod_ip or "-"),
        ("qos", pod.status.qos_class or "-"),
        ("service account", pod.spec.service_account_name or "-"),
        ("priority", f"{pod.spec.priority} {pod.spec.priority_class_name}".strip()),
    ]
    if pod.spec.node_selector:
        wanted_labels = sorted(pod.spec.node_selector.items())
        facts.append(("node selector", ",".join(f"{key}={value}" for key, value in wanted_labels)))
    if pod.status.message:
        facts.append(("message", pod.status.message))
    return facts, [
        *container_sections(pod, body),
        pairs("Labels", pod.metadata.labels),
        Section("Volumes", ("name", "source"), tuple(_volumes(body))),
        conditions(pod.status.conditions),
    ]


def _volumes(body: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for volume in body["spec"].get("volumes") or ():
        kinds = [key for key in volume if key != "name"]
        kind = kinds[0] if kinds else "-"
        source = volume.get(kind) or {}
        names = (source.get(key) for key in ("claimName", "name", "secretName", "path", "driver"))
        name = next((name for name in names if name), "")
        yield volume["name"], f"{kind} {name}".strip()


def _service(body: dict[str, Any], related: Snapshot) -> Parts:
    service = seen_as(body, Service)
    spec = service.spec
    selector = ",".join(f"{key}={value}" for key, value in sorted(spec.selector.items()))
    facts = [
        ("type", spec.type),
        ("selector", selector or "(none: endpoints are managed elsewhere)"),
        ("cluster ip", spec.cluster_ip or "-"),
    ]
    if spec.external_name:
        facts.append(("external name", spec.external_name))
    balanced = service.status.load_balancer.ingress
    facts += [("load balancer", address.ip or address.hostname) for address in balanced]
    ports = tuple(
        (
            port.name or "-",
            f"{port.port}/{port.protocol}",
            str(port.target_port),
            str(port.node_port or "-"),
        )
        for port in spec.ports
    )
    endpoints = []
    for endpoint_slice in related.of(listings.ENDPOINT_SLICES):
        owner = endpoint_slice.metadata.labels.get("kubernetes.io/service-name")
        if (endpoint_slice.metadata.namespace, owner) == (
            service.metadata.namespace,
            service.metadata.name,
        ):
            endpoints += [
                (
                    ", ".join(endpoint.addresses),
                    endpoint.target_ref.name if endpoint.target_ref else "-",
                    endpoint.node_name or "-",
                    "no" if endpoint.conditions.ready is False else "yes",
                )
                for endpoint in endpoint_slice.endpoints
            ]
    if not related.knows(listings.ENDPOINT_SLICES):
        facts.append(("endpoints", "unknown (listing endpointslices is forbidden)"))
    elif not endpoints:
        facts.append(("endpoints", "none"))
    return facts, [
        Section("Ports", ("name", "port", "target", "node port"), ports),
        Section("Endpoints", ("address", "pod", "node", "ready"), tuple(endpoints)),
        pairs("Labels", service.metadata.labels),
    ]


def _node(body: dict[str, Any], related: Snapshot) -> Parts:
    node = seen_as(body, Node)
    info, labels = node.status.node_info, node.metadata.labels
    facts = [
        ("schedulable", "no (cordoned)" if node.spec.unschedulable else "yes"),
        *((_spaced(address.type), address.address) for address in node.status.addresses),
        ("os", f"{info.os_image} ({info.operating_system}/{info.architecture})"),
        ("kernel", info.kernel_version),
        ("runtime", info.container_runtime_version),
        ("kubelet", info.kubelet_version),
        ("provider id", node.spec.provider_id or "-"),
    ]
    pods_seen = related.of(listings.PODS_IN_FULL)
    on_node = [pod for pod in pods_seen if pod.spec.node_name == node.metadata.name]
    taints = tuple((taint.key, taint.value or "-", taint.effect) for taint in node.spec.taints)
    pods = tuple((pod.metadata.namespace, pod.metadata.name, status_of(pod)) for pod in on_node)
    return facts, [
        _amounts(node, on_node, seen=related.knows(listings.PODS_IN_FULL)),
        Section("Taints", ("key", "value", "effect"), taints),
        pairs("NVIDIA labels", {k: v for k, v in labels.items() if k.startswith(_NVIDIA)}),
        pairs("Labels", {k: v for k, v in labels.items() if not k.startswith(_NVIDIA)}),
        pairs("Annotations", node.metadata.annotations),
        conditions(node.status.conditions),
        Section("Pods", ("namespace", "name", "status"), pods),
    ]


def _spaced(type: str) -> str:
    """`internal ip` for InternalIP."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type).lower()


def _amounts(node: Node, pods: Sequence[Pod], *, seen: bool) -> Section:
    requested = requested_by_node(pods).get(node.metadata.name, {})
    rows = []
    for name, whole in sorted(node.status.capacity.items()):
        shown = _quantity(name, requested.get(name, 0))
        offered = node.status.allocatable.get(name, "-")
        rows.append((name, whole, offered, shown if seen else "unknown"))
    return Section("Resources", ("resource", "capacity", "allocatable", "requested"), tuple(rows))


def _quantity(resource: str, amount: int) -> str:
    """The amount as a Kubernetes quantity: `500m`, `2Gi`."""
    if resource == CPU:
        return str(Quantity(amount * NANO // 1000))
    return str(Quantity(amount * NANO, Notation.BINARY))


_KINDS: dict[tuple[str, str], Callable[[dict[str, Any], Snapshot], Parts]] = {
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("", "nodes"): _node,
}
