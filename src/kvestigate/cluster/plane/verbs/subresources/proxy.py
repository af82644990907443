"""proxy: plain HTTP (and WebSockets) to a node's kubelet, a pod or one of a service's pods.

Pods are reached through their nodes, endpoints without a pod at their addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

from kvestigate.cluster.plane.egress import endpoints, relay
from kvestigate.cluster.plane.egress.dialer import AddressRefused
from kvestigate.cluster.plane.egress.locate import Address, Kubelet, PodPort, kubelet_of
from kvestigate.cluster.plane.request.call import Call
from kvestigate.errors import ApiError, BadRequest, ServiceUnavailable
from kvestigate.http import handshake
from kvestigate.http.message import Headers, Request, Response, Upgrade


class Target(NamedTuple):
    """`name`, `name:port` or `https:name:port`, as it is written in a path."""

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


Locate = Callable[[Call, Target], relay.Backend]

_UNPACKED = (("content-encoding", "gzip"), ("content-encoding", "x-gzip"))
"""Encodings of a backend's response that are undone when the response is read."""


async def proxy_node(call: Call) -> Response | Upgrade:
    return await _proxy(call, _node)


async def proxy_pod(call: Call) -> Response | Upgrade:
    return await _proxy(call, _pod)


async def proxy_service(call: Call) -> Response | Upgrade:
    return await _proxy(call, _service)


async def _proxy(call: Call, locate: Locate) -> Response | Upgrade:
    address = locate(call, Target.parse(call.info.name))
    incoming = call.request
    base, rest = _split(call)
    if not rest and incoming.method in ("GET", "HEAD"):
        # Relative links in the page resolve only below a path that ends with a slash.
        query = f"?{incoming.query}" if incoming.query else ""
        return Response(301, [("location", f"{base}/{query}")])
    headers = Headers([*relay.forwarded(incoming.headers), ("accept-encoding", "identity")])
    if handshake.wants_websocket(incoming):
        request = Request("GET", rest or "/", incoming.query, incoming.headers)
        return await relay.upgrade(call.backends, address, request, headers=headers)
    request = Request(incoming.method, rest or "/", incoming.query, headers, incoming.body)
    try:
        backend_response = await relay.send(call.backends, address, request)
    except AddressRefused:
        raise
    except ApiError as failure:
        why = f"error trying to reach service: {failure.message}"
        raise ServiceUnavailable(why) from failure
    if not 200 <= backend_response.status < 600:  # a client would take the connection for upgraded
        await backend_response.aclose()
        why = f"error trying to reach service: it answered {backend_response.status}"
        raise ServiceUnavailable(why)
    fields = [
        (name, _relocated(value, address, base) if name == "location" else value)
        for name, value in relay.forwarded(backend_response.headers)
        if (name, value.lower()) not in _UNPACKED
    ]
    body = relay.Body(backend_response)
    return Response(backend_response.status, fields, body, compress=False)


def _split(call: Call) -> tuple[str, str]:
    """The client's path up to `proxy`, and the rest of it, both as sent."""
    marker = f"/{call.info.resource}/{quote(call.info.name, safe=':')}/proxy"
    before, separator, rest = call.request.path.partition(marker)
    return before + separator, rest


def _relocated(location: str, address: relay.Backend, base: str) -> str:
    """A Location header; a redirect to the backend itself leads through the proxy again."""
    own = location.removeprefix(str(address))
    return f"{base}{own}" if own.startswith("/") and not own.startswith("//") else location


def _node(call: Call, target: Target) -> Kubelet | Address:
    kubelet = kubelet_of(call.plane.state, target.name)
    if not target.port or target.port == str(kubelet.port):
        return kubelet
    return Address(kubelet.host, endpoints.port_number(target.port), tls=target.scheme == "https")


def _pod(call: Call, target: Target) -> PodPort:
    tls = target.scheme == "https"
    return endpoints.pod_port(call.plane.state, call.namespace, target.name, target.port, tls=tls)


def _service(call: Call, target: Target) -> Address | PodPort:
    return endpoints.behind(
        call.plane.state,
        call.random,
        call.namespace,
        target.name,
        target.port,
        tls=target.scheme == "https",
    )
