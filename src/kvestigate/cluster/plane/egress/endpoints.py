"""The backend of a Service: one of its ready endpoints, chosen at random. Pure."""

from __future__ import annotations

from random import Random

from kvestigate.cluster.plane.egress.locate import Address, PodPort, kubelet_of, node_of
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.errors import BadRequest, NotFound, ServiceUnavailable

PODS = ("", "pods")
SERVICES = ("", "services")
SLICES = ("discovery.k8s.io", "endpointslices")
_SERVICE_LABEL = "kubernetes.io/service-name"


def behind(
    state: PlaneState,
    random: Random,
    namespace: str,
    service: str,
    port: str,
    *,
    tls: bool,
) -> Address | PodPort:
    """A backend of a Service. `port` is a number, a name, or empty for the first port."""
    item = state.get(SERVICES, namespace, service)
    if item is None:
        raise missing("services", service)
    ports = (objects.read(item).get("spec") or {}).get("ports") or ()
    matching = [
        candidate
        for candidate in ports
        if not port or port in (str(candidate["port"]), candidate.get("name"))
    ]
    if not matching:
        raise ServiceUnavailable(f'no service port {port} found for service "{service}"')
    ready = _ready_endpoints(state, namespace, service, matching[0].get("name") or "")
    if not ready:
        raise ServiceUnavailable(f'no endpoints available for service "{service}"')
    endpoint, number = random.choice(ready)
    reference = endpoint.get("targetRef") or {}
    if reference.get("kind") == "Pod":
        return pod_port(state, namespace, reference["name"], str(number), tls=tls)
    return Address(endpoint["addresses"][0], number, tls=tls)


def _ready_endpoints(
    state: PlaneState, namespace: str, service: str, port: str
) -> list[tuple[Object, int]]:
    """Every ready endpoint of a Service's port, and the number of the port there."""
    ready = []
    for item in state.collection(SLICES).items(namespace):
        if item.labels.get(_SERVICE_LABEL) != service:
            continue
        endpoint_slice = objects.read(item)
        numbers = [
            slice_port["port"]
            for slice_port in endpoint_slice.get("ports") or ()
            if (slice_port.get("name") or "") == port and slice_port.get("port") is not None
        ]
        for endpoint in endpoint_slice.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                ready += [(endpoint, number) for number in numbers]
    return ready


def pod_port(state: PlaneState, namespace: str, name: str, port: str, *, tls: bool) -> PodPort:
    """A port of a pod: the given one, or else the first that its containers declare."""
    item = state.get(PODS, namespace, name)
    if item is None:
        raise missing("pods", name)
    pod = objects.read(item)
    kubelet = kubelet_of(state, node_of(pod), as_kind="pods")
    number = port_number(port) if port else _first_port(pod)
    host = (pod.get("status") or {}).get("podIP") or name
    return PodPort(kubelet, namespace, name, item.uid, host, number, tls)


def _first_port(pod: Object) -> int:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            number: int = port["containerPort"]
            return number
    return 80


def port_number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise BadRequest(f'invalid port "{text}"')
    return int(text)


def missing(plural: str, name: str) -> NotFound:
    return NotFound(f'{plural} "{name}" not found', details={"name": name, "kind": plural})
