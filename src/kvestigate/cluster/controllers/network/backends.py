"""The pods behind a Service, as Endpoints and EndpointSlices both show them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from kvestigate.client.cache import Cache, Change, Key
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.kinds import PODS, SERVICES
from kvestigate.cluster.controllers.owners import NAMESPACE
from kvestigate.cluster.controllers.pods import is_leaving, is_ready
from kvestigate.cluster.controllers.reconciler import Reconciler
from kvestigate.kube.views.meta import ObjectReference
from kvestigate.kube.views.network import Service, ServicePort
from kvestigate.kube.views.pods import Pod


class Port(NamedTuple):
    """A port as clients reach it on a pod."""

    name: str
    port: int
    protocol: str


@dataclass(frozen=True, slots=True)
class Backend:
    """One pod of a Service."""

    pod: Pod
    ports: tuple[Port, ...]
    ready: bool
    """Whether clients are sent to it; a Service can publish addresses that are not ready."""
    serving: bool
    terminating: bool

    @property
    def hostname(self) -> str:
        return self.pod.spec.hostname


def backends(service: Service, pods: Iterable[Pod]) -> list[Backend]:
    """The pods that the Service selects and that have an address, in a stable order."""
    selector = service.spec.selector.items()
    publish = service.spec.publish_not_ready_addresses
    selected = []
    for pod in pods:
        if not selector <= pod.metadata.labels.items() or not pod.status.pod_ip:
            continue
        if pod.finished:
            continue
        serving, terminating = is_ready(pod), is_leaving(pod)
        selected.append(
            Backend(
                pod=pod,
                ports=_ports(service, pod),
                ready=publish or (serving and not terminating),
                serving=serving,
                terminating=terminating,
            )
        )
    return sorted(
        selected, key=lambda backend: (backend.pod.status.pod_ip, backend.pod.metadata.uid)
    )


def _ports(service: Service, pod: Pod) -> tuple[Port, ...]:
    ports = []
    for port in service.spec.ports:
        number = _target(port, pod)
        if number:
            ports.append(Port(port.name, number, port.protocol))
    return tuple(sorted(ports))


def _target(port: ServicePort, pod: Pod) -> int:
    """The pod's own number for a port; 0 if it has none by that name."""
    if isinstance(port.target_port, int):
        return port.target_port or port.port
    for container in pod.spec.containers:
        for offered in container.ports:
            if offered.name == port.target_port and offered.protocol == port.protocol:
                return offered.container_port
    return 0


class BackendController(Reconciler[Service]):
    """A controller that writes down the pods behind Services."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, SERVICES)
        self._pods = context.watch(PODS, partial(_service_keys, self._objects))

    def _backends(self, service: Service) -> list[Backend]:
        return backends(service, self._pods.find(NAMESPACE, service.metadata.namespace))


def _service_keys(services: Cache[Service], change: Change[Pod]) -> Iterable[Key]:
    """The Services that a pod's change concerns."""
    if not any(pod.status.pod_ip for pod in change.views):
        return
    for service in services.find(NAMESPACE, change.key.namespace):
        wanted = service.spec.selector.items()
        if wanted and any(wanted <= pod.metadata.labels.items() for pod in change.views):
            yield change.key.sibling(service.metadata.name)


def reference_to(pod: Pod) -> ObjectReference:
    return ObjectReference(
        kind="Pod",
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
    )
