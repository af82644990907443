"""Services with their endpoints, Ingresses with their backends, NetworkPolicies. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from kvestigate.kube.selectors import from_label_selector
from kvestigate.kube.views.network import (
    EndpointSlice,
    Ingress,
    IngressServiceBackend,
    NetworkPolicy,
    Service,
    ServicePort,
)
from kvestigate.render.blocks import Block, Cell, Field, Table, Tone, table, text
from kvestigate.render.human import or_unknown
from kvestigate.reports.model import Report, or_not_listed
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.pods import Pod

_SERVICE_LABEL = "kubernetes.io/service-name"

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class ServiceRow:
    namespace: str
    name: str
    type: str
    address: str
    ports: tuple[str, ...]
    selector: dict[str, str]
    ready: int | None
    """Ready endpoints; None if endpoints could not be listed."""
    not_ready: int | None


@dataclass(frozen=True, slots=True)
class Backend:
    """Where an Ingress sends requests."""

    host: str
    path: str
    service: str
    port: str
    problem: str | None
    """Why requests fail: `no such Service`; empty if they do not, None if that is unknown."""


@dataclass(frozen=True, slots=True)
class IngressRow:
    namespace: str
    name: str
    class_name: str
    backends: tuple[Backend, ...]


@dataclass(frozen=True, slots=True)
class PolicyRow:
    namespace: str
    name: str
    selector: str
    """Empty: every pod of the namespace."""
    types: tuple[str, ...]
    selected: int | None
    """Pods; None if they could not be listed."""


@dataclass(frozen=True, slots=True)
class NetworkReport:
    """None is unknown: the kind could not be listed."""

    services: tuple[ServiceRow, ...] | None
    ingresses: tuple[IngressRow, ...] | None
    policies: tuple[PolicyRow, ...] | None


def collect(snapshot: Snapshot) -> NetworkReport:
    services = snapshot.known(listings.SERVICES)
    ingresses = snapshot.known(listings.INGRESSES)
    policies = snapshot.known(listings.NETWORK_POLICIES)
    named = None if services is None else {_key(service): service for service in services}
    return NetworkReport(
        services=_services(snapshot, services),
        ingresses=None
        if ingresses is None
        else tuple(_ingress(ingress, named) for ingress in ingresses),
        policies=None if policies is None else _policies(policies, snapshot.known(listings.PODS)),
    )


def _services(
    snapshot: Snapshot, services: Sequence[Service] | None
) -> tuple[ServiceRow, ...] | None:
    slices = snapshot.known(listings.ENDPOINT_SLICES)
    if services is None or slices is None:
        return None if services is None else tuple(_service(one, None, None) for one in services)
    ready, not_ready = count_endpoints(slices)
    return tuple(_service(one, ready[_key(one)], not_ready[_key(one)]) for one in services)


def count_endpoints(slices: Iterable[EndpointSlice]) -> tuple[Counter[Key], Counter[Key]]:
    """Ready and other endpoints by Service. A pod in IPv4 and IPv6 slices counts once."""
    ready: dict[Key, set[str]] = {}
    others: dict[Key, set[str]] = {}
    for endpoint_slice in slices:
        key = (
            endpoint_slice.metadata.namespace,
            endpoint_slice.metadata.labels.get(_SERVICE_LABEL, ""),
        )
        for endpoint in endpoint_slice.endpoints:
            target = endpoint.target_ref
            backend = (target.uid or target.name) if target else ",".join(endpoint.addresses)
            kind = others if endpoint.conditions.ready is False else ready
            kind.setdefault(key, set()).add(backend)
    return _counted(ready), _counted(others)


def _counted(backends: Mapping[Key, set[str]]) -> Counter[Key]:
    return Counter({key: len(members) for key, members in backends.items()})


def _key(service: Service) -> Key:
    return service.metadata.namespace, service.metadata.name


def _service(service: Service, ready: int | None, not_ready: int | None) -> ServiceRow:
    spec = service.spec
    return ServiceRow(
        namespace=service.metadata.namespace,
        name=service.metadata.name,
        type=spec.type or "ClusterIP",
        address=spec.external_name or spec.cluster_ip,
        ports=tuple(f"{port.port}/{port.protocol}" for port in spec.ports),
        selector=spec.selector,
        ready=ready,
        not_ready=not_ready,
    )


def _ingress(ingress: Ingress, services: Mapping[Key, Service] | None) -> IngressRow:
    namespace = ingress.metadata.namespace
    return IngressRow(
        namespace=namespace,
        name=ingress.metadata.name,
        class_name=ingress.spec.ingress_class_name,
        backends=tuple(
            Backend(
                host,
                path,
                to.name,
                to.port.name or str(to.port.number),
                _problem(namespace, to, services),
            )
            for host, path, to in _backends(ingress)
        ),
    )


def _backends(ingress: Ingress) -> Iterator[tuple[str, str, IngressServiceBackend]]:
    default = ingress.spec.default_backend
    if default is not None and default.service is not None:
        yield "*", "*", default.service
    for rule in ingress.spec.rules:
        for path in rule.http.paths:
            if path.backend.service is not None:
                yield rule.host or "*", path.path or "/", path.backend.service


def _problem(
    namespace: str, to: IngressServiceBackend, services: Mapping[Key, Service] | None
) -> str | None:
    if services is None:
        return None
    service = services.get((namespace, to.name))
    if service is None:
        return "no such Service"
    if any(_is(port, to) for port in service.spec.ports):
        return ""
    return "the Service has no such port"


def _is(port: ServicePort, wanted: IngressServiceBackend) -> bool:
    if wanted.port.name:
        return port.name == wanted.port.name
    return port.port == wanted.port.number


def _policies(
    policies: Sequence[NetworkPolicy], pods: Iterable[Pod] | None
) -> tuple[PolicyRow, ...]:
    labels: dict[str, list[Mapping[str, str]]] = {}
    for pod in (pods or ()) if policies else ():
        if not pod.finished:
            labels.setdefault(pod.metadata.namespace, []).append(pod.metadata.labels)
    rows = []
    for policy in policies:
        selector = from_label_selector(msgspec.to_builtins(policy.spec.pod_selector))
        namespace = policy.metadata.namespace
        rows.append(
            PolicyRow(
                namespace=namespace,
                name=policy.metadata.name,
                selector=str(selector),
                types=policy.spec.policy_types,
                selected=None
                if pods is None
                else sum(map(selector.matches, labels.get(namespace, ()))),
            )
        )
    return tuple(rows)


def render(report: NetworkReport) -> Sequence[Block]:
    return [
        text("Services", Tone.STRONG),
        or_not_listed(report.services, _service_table, "Services"),
        text("Ingresses", Tone.STRONG),
        or_not_listed(report.ingresses, _ingress_table, "Ingresses"),
        text("NetworkPolicies", Tone.STRONG),
        or_not_listed(report.policies, _policy_table, "NetworkPolicies"),
    ]


def _service_table(services: Sequence[ServiceRow]) -> Table:
    return table(
        services,
        Field("namespace", lambda row: row.namespace),
        Field("name", lambda row: row.name),
        Field("type", lambda row: row.type),
        Field("address", lambda row: row.address),
        Field("ports", lambda row: ", ".join(row.ports)),
        Field("endpoints", _endpoints, number=True),
        empty="no Services",
    )


def _endpoints(service: ServiceRow) -> str | Cell:
    if service.type == "ExternalName":
        return "-"
    if service.ready is None:
        return "unknown"
    waiting = f" (+{service.not_ready} not ready)" if service.not_ready else ""
    broken = bool(service.selector) and not service.ready
    return Cell(f"{service.ready}{waiting}", Tone.BAD if broken else Tone.PLAIN)


def _ingress_table(ingresses: Sequence[IngressRow]) -> Table:
    return table(
        [(ingress, backend) for ingress in ingresses for backend in ingress.backends],
        Field("namespace", lambda row: row[0].namespace),
        Field("name", lambda row: row[0].name),
        Field("class", lambda row: row[0].class_name or "-"),
        Field("host", lambda row: row[1].host),
        Field("path", lambda row: row[1].path),
        Field("backend", lambda row: _backend(row[1])),
        empty="no Ingresses",
    )


def _backend(backend: Backend) -> Cell:
    where = f"{backend.service}:{backend.port}"
    return Cell(f"{where}: {backend.problem}", Tone.BAD) if backend.problem else Cell(where)


def _policy_table(policies: Sequence[PolicyRow]) -> Table:
    return table(
        policies,
        Field("namespace", lambda row: row.namespace),
        Field("name", lambda row: row.name),
        Field("selector", lambda row: row.selector or "(all pods)"),
        Field("types", lambda row: ", ".join(row.types)),
        Field(
            "pods",
            lambda row: Cell(
                or_unknown(row.selected), Tone.WARN if row.selected == 0 else Tone.PLAIN
            ),
            number=True,
        ),
        empty="no NetworkPolicies",
    )


REPORT = Report(
    name="network",
    summary="Services with endpoint counts, Ingress backends, NetworkPolicies.",
    needs=(
        listings.SERVICES,
        listings.ENDPOINT_SLICES,
        listings.INGRESSES,
        listings.NETWORK_POLICIES,
        listings.PODS,
    ),
    collect=collect,
    render=render,
)
