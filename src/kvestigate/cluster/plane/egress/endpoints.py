"""Who answers for a Service: one of its ready endpoints. Pure."""

from __future__ import annotations

from random import Random

from kvestigate.cluster.plane.egress.locate import (
    Address,
    PodPort,
    check_proxied,
    kubelet_of,
    node_of,
)
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
    loopback: bool,
) -> Address | PodPort:
    """`port` is a number, a name, or nothing for the first one."""
    item = state.get(SERVICES, namespace, service)
    if item is None:
        raise missing("services", service)
    ports = (objects.read(item).get("spec") or {}).get("ports") or ()
    wanted = [each for each in ports if not port or port in (str(each["port"]), each.get("name"))]
    if not wanted:
        raise ServiceUnavailable(f'no service port {port} found for service "{service}"')
    found = _endpoints(state, namespace, service, wanted[0].get("name") or "")
    if not found:
        raise ServiceUnavailable(f'no endpoints available for service "{service}"')
    endpoint, number = random.choice(found)
    reference = endpoint.get("targetRef") or {}
    if reference.get("kind") == "Pod":
        return pod_port(state, namespace, reference["name"], str(number), tls=tls)
    host = endpoint["addresses"][0]
    check_proxied(host, loopback=loopback)
    return Address(host, number, tls=tls)


def _endpoints(
    state: PlaneState, namespace: str, service: str, port: str
) -> list[tuple[Object, int]]:
    """Every ready endpoint behind a service's port, and the number of the port there."""
    found = []
    for item in state.collection(SLICES).items(namespace):
        if item.labels.get(_SERVICE_LABEL) != service:
            continue
        piece = objects.read(item)
        numbers = [each["port"] for each in piece.get("ports") or () if _is(each, port)]
        for endpoint in piece.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                found += [(endpoint, number) for number in numbers]
    return found


def _is(port: Object, name: str) -> bool:
    return (port.get("name") or "") == name and port.get("port") is not None


def pod_port(state: PlaneState, namespace: str, name: str, port: str, *, tls: bool) -> PodPort:
    """A port of a pod: the one that is asked for, or else its first."""
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
