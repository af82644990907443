"""proxy: plain HTTP (and WebSockets) to a node's kubelet, a pod or one of a service's pods.

Pods are reached through their nodes; endpoints without a pod at the address they name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from kvestigate.errors import ApiError, BadRequest, NotFound, ServiceUnavailable
from kvestigate.plane import objects
from kvestigate.plane.call import Call
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.kubelet import relay
from kvestigate.plane.kubelet.locate import Address, PodPort, check_proxied, kubelet_of, node_of
from kvestigate.wire import handshake
from kvestigate.wire.message import Headers, Request, Response, Upgrade

PODS = ("", "pods")
SLICES = ("discovery.k8s.io", "endpointslices")
_SERVICE_LABEL = "kubernetes.io/service-name"


class Target(NamedTuple):
    """`name`, `name:port` or `https:name:port`, as it stands in a path."""

    scheme: str
    name: str
    port: str

    @classmethod
    def parse(cls, text: str) -> Target:
        parts = text.split(":")
        if len(parts) == 1:
            return cls("http", text, "")
        if len(parts) == 2:
            return cls("http", parts[0], parts[1])
        if len(parts) == 3 and parts[0] in ("http", "https", ""):
            return cls(parts[0] or "http", parts[1], parts[2])
        raise BadRequest(f'invalid proxy target "{text}"')


Locate = Callable[[Call, Target], Address | PodPort]


async def proxy_node(call: Call) -> Response | Upgrade:
    return await _proxy(call, _node)


async def proxy_pod(call: Call) -> Response | Upgrade:
    return await _proxy(call, _pod)


async def proxy_service(call: Call) -> Response | Upgrade:
    return await _proxy(call, _service)


async def _proxy(call: Call, locate: Locate) -> Response | Upgrade:
    address = locate(call, Target.parse(call.asked.name))
    incoming = call.request
    base, rest = _split(call)
    if not rest and incoming.method in ("GET", "HEAD"):
        # Relative links on the page work only below a slash.
        query = f"?{incoming.query}" if incoming.query else ""
        return Response(301, [("location", f"{base}/{query}")])
    headers = Headers([*relay.passed_on(incoming.headers), ("accept-encoding", "identity")])
    if handshake.wants_websocket(incoming):
        request = Request("GET", rest or "/", incoming.query, incoming.headers)
        return await relay.upgrade(call.backends, address, request, headers=headers)
    request = Request(incoming.method, rest or "/", incoming.query, headers, incoming.body)
    try:
        answered = await relay.ask(call.backends, address, request)
    except ApiError as failure:
        why = f"error trying to reach service: {failure.message}"
        raise ServiceUnavailable(why) from failure
    fields = [
        (name, _relocated(value, address, base) if name == "location" else value)
        for name, value in relay.passed_on(answered.headers)
    ]
    return Response(answered.status, fields, relay.Body(answered), compress=False)


def _split(call: Call) -> tuple[str, str]:
    """The client's path up to `proxy`, and what follows it, both as sent."""
    marker = f"/{call.asked.resource}/{quote(call.asked.name, safe=':')}/proxy"
    before, found, rest = call.request.path.partition(marker)
    return before + found, rest


def _relocated(location: str, address: Address | PodPort, base: str) -> str:
    """A redirect of the backend to itself, as the client has to follow it."""
    own = location.removeprefix(str(address))
    return f"{base}{own}" if own.startswith("/") and not own.startswith("//") else location


def _node(call: Call, target: Target) -> Address:
    address = kubelet_of(call.plane.state, target.name)
    if not target.port or target.port == str(address.port):
        return address
    check_proxied(address.host, loopback=call.backends.loopback)
    return Address(address.host, _number(target.port), tls=target.scheme == "https")


def _pod(call: Call, target: Target) -> PodPort:
    return _pod_port(call, target.name, target.port, tls=target.scheme == "https")


def _pod_port(call: Call, name: str, port: str, *, tls: bool) -> PodPort:
    state = call.plane.state
    item = state.get(PODS, call.namespace, name)
    if item is None:
        raise _missing("pods", name)
    pod = objects.read(item)
    kubelet = kubelet_of(state, node_of(pod), as_kind="pods")
    number = _number(port) if port else _first_port(pod)
    host = (pod.get("status") or {}).get("podIP") or name
    return PodPort(kubelet, call.namespace, name, item.uid, host, number, tls)


def _first_port(pod: Object) -> int:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            number: int = port["containerPort"]
            return number
    return 80


def _service(call: Call, target: Target) -> Address | PodPort:
    item = call.plane.state.get(call.kind.key, call.namespace, target.name)
    if item is None:
        raise _missing("services", target.name)
    ports = (objects.read(item).get("spec") or {}).get("ports") or ()
    wanted = [
        port
        for port in ports
        if not target.port or target.port in (str(port["port"]), port.get("name"))
    ]
    if not wanted:
        raise ServiceUnavailable(f'no service port {target.port} found for service "{target.name}"')
    found = _endpoints(call, target.name, wanted[0].get("name") or "")
    if not found:
        raise ServiceUnavailable(f'no endpoints available for service "{target.name}"')
    endpoint, number = call.random.choice(found)
    tls = target.scheme == "https"
    reference = endpoint.get("targetRef") or {}
    if reference.get("kind") == "Pod":
        return _pod_port(call, reference["name"], str(number), tls=tls)
    host = endpoint["addresses"][0]
    check_proxied(host, loopback=call.backends.loopback)
    return Address(host, number, tls=tls)


def _endpoints(call: Call, service: str, port: str) -> list[tuple[Object, int]]:
    """Every ready endpoint behind a service's port, and the number of the port there."""
    found = []
    for item in call.plane.state.collection(SLICES).items(call.namespace):
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


def _number(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise BadRequest(f'invalid port "{text}"')
    return int(text)


def _missing(plural: str, name: str) -> NotFound:
    return NotFound(f'{plural} "{name}" not found', details={"name": name, "kind": plural})
