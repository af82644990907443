"""EndpointSlices: the addresses behind a Service, a hundred to a slice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.client.cache import Change, Key
from kvestigate.cluster.controllers import owners
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import ENDPOINT_SLICES, NODES, SERVICES
from kvestigate.cluster.controllers.network.backends import (
    Backend,
    BackendController,
    Port,
    reference_to,
)
from kvestigate.cluster.controllers.network.endpoints import HEADLESS
from kvestigate.kube.views.network import (
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
    Service,
)

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
ZONE = "topology.kubernetes.io/zone"
CAPACITY = 100

_SERVICE = "service"
_Ports = tuple[EndpointPort, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    create: tuple[tuple[_Ports, tuple[Endpoint, ...]], ...] = ()
    update: tuple[tuple[EndpointSlice, tuple[Endpoint, ...]], ...] = ()
    delete: tuple[EndpointSlice, ...] = ()


def decide(
    service: Service,
    selected: Sequence[Backend],
    slices: Sequence[EndpointSlice],
    zones: Mapping[str, str],
) -> Decision:
    """The fewest writes: an endpoint stays in its slice, new ones fill what has room."""
    wanted = _by_ports(service, selected, zones)
    create, update, delete = [], [], []
    for ports, endpoints in wanted.items():
        own = [endpoint_slice for endpoint_slice in slices if endpoint_slice.ports == ports]
        left = dict(endpoints)
        kept = [
            [left.pop(uid) for uid in _uids(endpoint_slice) if uid in left]
            for endpoint_slice in own
        ]
        for position, endpoint_slice in enumerate(own):
            room = CAPACITY - len(kept[position])
            for uid in list(left)[:room]:
                kept[position].append(left.pop(uid))
            if not kept[position] and len(own) > 1:
                delete.append(endpoint_slice)
            elif tuple(kept[position]) != endpoint_slice.endpoints:
                update.append((endpoint_slice, tuple(kept[position])))
        rest = list(left.values())
        for start in range(0, len(rest), CAPACITY):
            create.append((ports, tuple(rest[start : start + CAPACITY])))
    delete += [endpoint_slice for endpoint_slice in slices if endpoint_slice.ports not in wanted]
    return Decision(tuple(create), tuple(update), tuple(delete))


def _by_ports(
    service: Service, selected: Sequence[Backend], zones: Mapping[str, str]
) -> dict[_Ports, dict[str, Endpoint]]:
    wanted: dict[_Ports, dict[str, Endpoint]] = {}
    for backend in selected:
        if not backend.ports and service.spec.ports:
            continue
        ports = tuple(map(_port, backend.ports))
        uid = backend.pod.metadata.uid
        wanted.setdefault(ports, {})[uid] = _endpoint(service, backend, zones)
    return wanted


def _port(port: Port) -> EndpointPort:
    return EndpointPort(*port)


def _uids(endpoint_slice: EndpointSlice) -> list[str]:
    return [endpoint.target_ref.uid for endpoint in endpoint_slice.endpoints if endpoint.target_ref]


def _endpoint(service: Service, backend: Backend, zones: Mapping[str, str]) -> Endpoint:
    pod = backend.pod
    named = backend.hostname and pod.spec.subdomain == service.metadata.name
    return Endpoint(
        addresses=(pod.status.pod_ip,),
        conditions=EndpointConditions(backend.ready, backend.serving, backend.terminating),
        hostname=backend.hostname if named else "",
        node_name=pod.spec.node_name,
        zone=zones.get(pod.spec.node_name, ""),
        target_ref=reference_to(pod),
    )


class EndpointSliceController(BackendController):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._slices = context.watch(ENDPOINT_SLICES, _service_key)
        self._slices.add_index(_SERVICE, _service_name)
        self._nodes = context.cache(NODES)

    async def reconcile(self, key: Key) -> float | None:
        service = self._objects.get(key)
        slices = self._slices.find(_SERVICE, str(key))
        if service is None or service.metadata.deletion_timestamp is not None:
            for endpoint_slice in slices:
                await self._context.delete(ENDPOINT_SLICES, endpoint_slice)
            return None
        if not service.spec.selector:
            return None
        selected = self._backends(service)
        decision = decide(service, selected, slices, self._zones(selected))
        for endpoint_slice, endpoints in decision.update:
            patch = {"endpoints": _written(endpoints)}
            await self._context.patch(ENDPOINT_SLICES, endpoint_slice, patch)
        for ports, endpoints in decision.create:
            await self._context.create(ENDPOINT_SLICES, _body(service, ports, endpoints))
        for endpoint_slice in decision.delete:
            await self._context.delete(ENDPOINT_SLICES, endpoint_slice)
        return None

    def _zones(self, endpoints: Iterable[Backend]) -> dict[str, str]:
        names = {backend.pod.spec.node_name for backend in endpoints}
        nodes = {name: self._nodes.get(Key("", name)) for name in names}
        return {name: node.metadata.labels.get(ZONE, "") for name, node in nodes.items() if node}


def _service_name(endpoint_slice: EndpointSlice) -> tuple[str, ...]:
    labels = endpoint_slice.metadata.labels
    if labels.get(MANAGED_BY) != MANAGER:
        return ()
    return (f"{endpoint_slice.metadata.namespace}/{labels.get(SERVICE_NAME, '')}",)


def _service_key(change: Change[EndpointSlice]) -> Iterable[Key]:
    for endpoint_slice in change.views:
        name = endpoint_slice.metadata.labels.get(SERVICE_NAME)
        if name and endpoint_slice.metadata.labels.get(MANAGED_BY) == MANAGER:
            yield change.key.sibling(name)


def _body(service: Service, ports: _Ports, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    resource = ENDPOINT_SLICES.resource
    labels = {
        **service.metadata.labels,
        SERVICE_NAME: service.metadata.name,
        MANAGED_BY: MANAGER,
    }
    if service.spec.cluster_ip == "None":
        labels[HEADLESS] = ""
    first = endpoints[0].addresses[0]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "generateName": f"{service.metadata.name}-",
            "namespace": service.metadata.namespace,
            "labels": labels,
            "ownerReferences": [owners.controller_reference(SERVICES, service)],
        },
        "addressType": "IPv6" if ":" in first else "IPv4",
        "endpoints": _written(endpoints),
        "ports": [
            {"name": port.name, "port": port.port, "protocol": port.protocol} for port in ports
        ],
    }


def _written(endpoints: Sequence[Endpoint]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = msgspec.to_builtins(endpoints)
    return written
