"""exec, attach and port-forward: WebSockets through to the kubelet.

The client's subprotocols are offered to the kubelet, and the kubelet's choice is the answer. So
messages pass unread, be they channels of `v5.channel.k8s.io` or SPDY inside a WebSocket.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from kvestigate.cluster.plane.egress import relay
from kvestigate.cluster.plane.egress.locate import container_of, kubelet_of, node_of
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.request.call import Call
from kvestigate.http import handshake
from kvestigate.http.message import Headers, Request, Response, Upgrade

# The query parameters of the API, and those of the kubelet.
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


async def exec_in(call: Call) -> Response | Upgrade:
    """pods/NAME/exec"""
    return await _stream_in_container(call, "exec", "command")


async def attach_to(call: Call) -> Response | Upgrade:
    """pods/NAME/attach"""
    return await _stream_in_container(call, "attach")


async def forward_ports(call: Call) -> Response | Upgrade:
    """pods/NAME/portforward"""
    pod = objects.read(call.find(call.plane.state))
    node = node_of(pod)
    ports = [value for name, value in _pairs(call) if name == "ports"]
    query = urlencode({"port": ",".join(ports)}) if ports else ""
    return await _connect(call, node, f"/portForward/{_pod_path(call)}", query)


async def _stream_in_container(call: Call, endpoint: str, *parameters: str) -> Response | Upgrade:
    """A stream at an endpoint of the kubelet, which also gets these parameters of the query."""
    pod = objects.read(call.find(call.plane.state))
    container = container_of(pod, call.info.params.get("container", ""))
    node = node_of(pod)
    query = [(inner, "1") for outer, inner in _STREAMS.items() if call.info.flag(outer)]
    query += [(name, value) for name, value in _pairs(call) if name in parameters]
    path = f"/{endpoint}/{_pod_path(call)}/{quote(container)}"
    return await _connect(call, node, path, urlencode(query))


async def _connect(call: Call, node: str, path: str, query: str) -> Response | Upgrade:
    address = kubelet_of(call.plane.state, node, as_kind="pods")
    if not handshake.wants_websocket(call.request):
        # When its WebSocket was refused, kubectl tries SPDY and prints the answer to that. The
        # kubelet's answer is the useful one: it reports other errors before a missing upgrade.
        raise await relay.refusal_without_upgrade(
            call.backends, address, Request("GET", path, query, Headers())
        )
    request = Request("GET", path, query, call.request.headers)
    return await relay.upgrade(call.backends, address, request)


def _pod_path(call: Call) -> str:
    return f"{quote(call.namespace)}/{quote(call.info.name)}"


def _pairs(call: Call) -> list[tuple[str, str]]:
    return parse_qsl(call.request.query, keep_blank_values=True)
