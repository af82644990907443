"""PURE. An object as facts and tables. Values of Secrets are never among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from kvestigate.inspection.anything import facts_of_anything
from kvestigate.inspection.status import ready_of, status_of
from kvestigate.kube.decode import decode
from kvestigate.kube.quantities import NANO, Notation, Quantity
from kvestigate.kube.requests import CPU
from kvestigate.kube.resources import Resource
from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.core import Event, Node
from kvestigate.kube.views.meta import Condition
from kvestigate.kube.views.network import Service
from kvestigate.kube.views.pods import Container, ContainerState
from kvestigate.kube.views.pods import Pod as WholePod
from kvestigate.kube.views.workloads import Deployment
from kvestigate.observe import listings
from kvestigate.observe.capacity import requested_by_node
from kvestigate.observe.snapshot import Snapshot
from kvestigate.observe.views import Pod
from kvestigate.render.blocks import Block, Column, Facts, Table, Tone, text
from kvestigate.render.human import age

T = TypeVar("T")

_NVIDIA = "nvidia.com/"


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Description:
    kind: str
    namespace: str
    name: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...] = ()

    def with_section(self, section: Section) -> Description:
        return replace(self, sections=(*self.sections, section))


Parts = tuple[list[tuple[str, str]], list[Section]]


def describe(resource: Resource, body: dict[str, Any], besides: Snapshot) -> Description:
    """`body` as the server sent it; `besides` holds what else its kind needs."""
    metadata = body["metadata"]
    special = _KINDS.get((resource.group, resource.plural))
    parts = special(body, besides) if special else (facts_of_anything(resource, body), [])
    facts, sections = parts
    return Description(
        kind=resource.kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        facts=(*_identity(metadata), *facts),
        sections=tuple(it for it in sections if it.rows),
    )


def blocks(described: Description) -> Sequence[Block]:
    made: list[Block] = [Facts(described.facts)]
    for section in described.sections:
        made.append(text(section.title, Tone.STRONG))
        made.append(Table([Column(it) for it in section.columns], section.rows))
    return made


def events_section(events: Iterable[Event], now: datetime) -> Section | None:
    """Oldest first, as they happened."""
    found = sorted(events, key=_happened)
    if not found:
        return None
    rows = tuple(
        (age((now - _happened(it)).total_seconds()), it.type, it.reason, _times(it), it.message)
        for it in found
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


def _seen_as(body: dict[str, Any], type: type[T]) -> T:
    return decode(msgspec.json.encode(body), type)


def _identity(metadata: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("name", metadata["name"])]
    if metadata.get("namespace"):
        facts.append(("namespace", metadata["namespace"]))
    facts.append(("created", str(metadata.get("creationTimestamp") or "-")))
    if metadata.get("deletionTimestamp"):
        facts.append(("being deleted since", str(metadata["deletionTimestamp"])))
    owners = metadata.get("ownerReferences") or ()
    facts += [("owned by", f"{it['kind']}/{it['name']}") for it in owners]
    return facts


def _pairs(title: str, found: dict[str, str]) -> Section:
    return Section(title, ("name", "value"), tuple(sorted(found.items())))


def _conditions(found: Iterable[Condition]) -> Section:
    rows = tuple((it.type, it.status, it.reason, it.message) for it in found)
    return Section("Conditions", ("type", "status", "reason", "message"), rows)


def _pod(body: dict[str, Any], besides: Snapshot) -> Parts:
    pod = _seen_as(body, WholePod)
    brief = _seen_as(body, Pod)
    ready, wanted = ready_of(brief)
    facts = [
        ("status", status_of(brief)),
        ("ready", f"{ready}/{wanted}"),
        ("node", pod.spec.node_name or "(none yet)"),
        ("ip", pod.status.pod_ip or "-"),
        ("qos", pod.status.qos_class or "-"),
        ("service account", pod.spec.service_account_name or "-"),
        ("priority", f"{pod.spec.priority} {pod.spec.priority_class_name}".strip()),
    ]
    if pod.status.message:
        facts.append(("message", pod.status.message))
    return facts, [
        _containers(pod),
        _resources(pod),
        _pairs("Labels", pod.metadata.labels),
        Section("Volumes", ("name", "source"), tuple(_volumes(body))),
        _conditions(pod.status.conditions),
    ]


def _containers(pod: WholePod) -> Section:
    statuses = {
        it.name: it for it in (*pod.status.init_container_statuses, *pod.status.container_statuses)
    }
    rows = []
    for kind, container in _each(pod):
        status = statuses.get(container.name)
        rows.append(
            (
                container.name,
                kind,
                container.image,
                _state(status.state) if status else "-",
                str(status.restart_count) if status else "0",
                _state(status.last_state) if status else "-",
            )
        )
    return Section(
        "Containers", ("name", "kind", "image", "state", "restarts", "last state"), tuple(rows)
    )


def _resources(pod: WholePod) -> Section:
    rows = []
    for _, container in _each(pod):
        asked, limits = container.resources.requests, container.resources.limits
        for name in sorted({*asked, *limits}):
            rows.append((container.name, name, asked.get(name, "-"), limits.get(name, "-")))
    return Section("Resources", ("container", "resource", "request", "limit"), tuple(rows))


def _each(pod: WholePod) -> Iterable[tuple[str, Container]]:
    for container in pod.spec.init_containers:
        yield "sidecar" if container.restart_policy == "Always" else "init", container
    for container in pod.spec.containers:
        yield "main", container


def _state(state: ContainerState) -> str:
    if state.running is not None:
        since = state.running.started_at
        return f"running since {since:%Y-%m-%d %H:%M:%S}Z" if since else "running"
    if state.waiting is not None:
        said = f": {state.waiting.message}" if state.waiting.message else ""
        return f"waiting: {state.waiting.reason or 'no reason given'}{said}"
    if state.terminated is not None:
        ended = state.terminated
        return f"ended with {ended.exit_code} ({ended.reason or 'no reason given'})"
    return "-"


def _volumes(body: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for volume in body["spec"].get("volumes") or ():
        kinds = [key for key in volume if key != "name"]
        kind = kinds[0] if kinds else "-"
        source = volume.get(kind) or {}
        names = (source.get(key) for key in ("claimName", "name", "secretName", "path", "driver"))
        name = next((it for it in names if it), "")
        yield volume["name"], f"{kind} {name}".strip()


def _service(body: dict[str, Any], besides: Snapshot) -> Parts:
    service = _seen_as(body, Service)
    spec = service.spec
    selector = ",".join(f"{key}={value}" for key, value in sorted(spec.selector.items()))
    facts = [
        ("type", spec.type),
        ("selector", selector or "(none: endpoints are made by somebody else)"),
        ("cluster ip", spec.cluster_ip or "-"),
    ]
    if spec.external_name:
        facts.append(("external name", spec.external_name))
    balanced = service.status.load_balancer.ingress
    facts += [("load balancer", it.ip or it.hostname) for it in balanced]
    ports = tuple(
        (it.name or "-", f"{it.port}/{it.protocol}", str(it.target_port), str(it.node_port or "-"))
        for it in spec.ports
    )
    endpoints = []
    for one in besides.of(listings.ENDPOINT_SLICES):
        owner = one.metadata.labels.get("kubernetes.io/service-name")
        if (one.metadata.namespace, owner) == (service.metadata.namespace, service.metadata.name):
            endpoints += [
                (
                    ", ".join(it.addresses),
                    it.target_ref.name if it.target_ref else "-",
                    it.node_name or "-",
                    "no" if it.conditions.ready is False else "yes",
                )
                for it in one.endpoints
            ]
    if not besides.knows(listings.ENDPOINT_SLICES):
        facts.append(("endpoints", "not seen: they may not be listed"))
    elif not endpoints:
        facts.append(("endpoints", "none"))
    return facts, [
        Section("Ports", ("name", "port", "target", "node port"), ports),
        Section("Endpoints", ("address", "pod", "node", "ready"), tuple(endpoints)),
        _pairs("Labels", service.metadata.labels),
    ]


def _deployment(body: dict[str, Any], besides: Snapshot) -> Parts:
    found = _seen_as(body, Deployment)
    status = found.status
    selector = from_label_selector(body["spec"].get("selector"))
    facts = [
        (
            "replicas",
            f"{found.spec.replicas} desired, {status.updated_replicas} updated, "
            f"{status.ready_replicas} ready, {status.available_replicas} available",
        ),
        ("strategy", found.spec.strategy.type),
        ("selector", str(selector)),
    ]
    if found.spec.paused:
        facts.append(("paused", "yes: changes are not rolled out"))
    template = tuple(
        (it.name, it.image, _written(it.resources.requests), _written(it.resources.limits))
        for it in found.spec.template.spec.containers
    )
    pods = tuple(
        (it.metadata.name, status_of(it), "/".join(map(str, ready_of(it))), it.spec.node_name)
        for it in besides.of(listings.PODS_IN_FULL)
        if it.metadata.namespace == found.metadata.namespace
        and selector.matches(it.metadata.labels)
    )
    return facts, [
        Section("Containers", ("name", "image", "requests", "limits"), template),
        Section("Pods", ("name", "status", "ready", "node"), pods),
        _pairs("Labels", found.metadata.labels),
        _conditions(status.conditions),
    ]


def _written(found: dict[str, str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in sorted(found.items())) or "-"


def _node(body: dict[str, Any], besides: Snapshot) -> Parts:
    node = _seen_as(body, Node)
    info, labels = node.status.node_info, node.metadata.labels
    facts = [
        ("schedulable", "no: cordoned" if node.spec.unschedulable else "yes"),
        *((it.type.lower(), it.address) for it in node.status.addresses),
        ("os", f"{info.os_image} ({info.operating_system}/{info.architecture})"),
        ("kernel", info.kernel_version),
        ("runtime", info.container_runtime_version),
        ("kubelet", info.kubelet_version),
        ("provider id", node.spec.provider_id or "-"),
    ]
    pods_seen = besides.of(listings.PODS_IN_FULL)
    mine = [it for it in pods_seen if it.spec.node_name == node.metadata.name]
    taints = tuple((it.key, it.value or "-", it.effect) for it in node.spec.taints)
    pods = tuple((it.metadata.namespace, it.metadata.name, status_of(it)) for it in mine)
    return facts, [
        _amounts(node, mine, seen=besides.knows(listings.PODS_IN_FULL)),
        Section("Taints", ("key", "value", "effect"), taints),
        _pairs("NVIDIA labels", {k: v for k, v in labels.items() if k.startswith(_NVIDIA)}),
        _pairs("Labels", {k: v for k, v in labels.items() if not k.startswith(_NVIDIA)}),
        _pairs("Annotations", node.metadata.annotations),
        _conditions(node.status.conditions),
        Section("Pods", ("namespace", "name", "status"), pods),
    ]


def _amounts(node: Node, pods: Sequence[Pod], *, seen: bool) -> Section:
    asked = requested_by_node(pods).get(node.metadata.name, {})
    rows = []
    for name, whole in sorted(node.status.capacity.items()):
        shown = _quantity(name, asked.get(name, 0))
        offered = node.status.allocatable.get(name, "-")
        rows.append((name, whole, offered, shown if seen else "?"))
    return Section("Resources", ("resource", "capacity", "allocatable", "requested"), tuple(rows))


def _quantity(resource: str, amount: int) -> str:
    """In the notation of the columns beside it."""
    if resource == CPU:
        return str(Quantity(amount * NANO // 1000))
    return str(Quantity(amount * NANO, Notation.BINARY))


_KINDS: dict[tuple[str, str], Callable[[dict[str, Any], Snapshot], Parts]] = {
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("apps", "deployments"): _deployment,
    ("", "nodes"): _node,
}
