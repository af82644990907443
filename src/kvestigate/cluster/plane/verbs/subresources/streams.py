"""exec, attach and port-forward: WebSockets through to the kubelet.

The client's subprotocols are offered to the kubelet and its choice is the answer, so the
messages are never looked at: channels of `v5.channel.k8s.io`, or SPDY inside a WebSocket.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from kvestigate.cluster.plane.egress import relay
from kvestigate.cluster.plane.egress.locate import container_of, kubelet_of, node_of
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.request.call import Call
from kvestigate.http import handshake
from kvestigate.http.message import Headers, Request, Response, Upgrade

# What the API calls a stream, and what the kubelet does.
_STREAMS = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


async def exec_in(call: Call) -> Response | Upgrade:
    """pods/NAME/exec"""
    return await _in_container(call, "exec", "command")


async def attach_to(call: Call) -> Response | Upgrade:
    """pods/NAME/attach"""
    return await _in_container(call, "attach")


async def forward_ports(call: Call) -> Response | Upgrade:
    """pods/NAME/portforward"""
    pod = objects.read(call.find(call.plane.state))
    node = node_of(pod)
    ports = [value for name, value in _pairs(call) if name == "ports"]
    query = urlencode({"port": ",".join(ports)}) if ports else ""
    return await _through(call, node, f"/portForward/{_pod_path(call)}", query)


async def _in_container(call: Call, what: str, *passed: str) -> Response | Upgrade:
    pod = objects.read(call.find(call.plane.state))
    container = container_of(pod, call.info.params.get("container", ""))
    node = node_of(pod)
    query = [(inner, "1") for outer, inner in _STREAMS.items() if call.info.flag(outer)]
    query += [(name, value) for name, value in _pairs(call) if name in passed]
    path = f"/{what}/{_pod_path(call)}/{quote(container)}"
    return await _through(call, node, path, urlencode(query))


async def _through(call: Call, node: str, path: str, query: str) -> Response | Upgrade:
    address = kubelet_of(call.plane.state, node, as_kind="pods")
    if not handshake.wants_websocket(call.request):
        # kubectl asks again, for SPDY, when its WebSocket was refused, and shows the answer to
        # that: the kubelet finds what else is wrong before it misses the upgrade.
        raise await relay.objection(call.backends, address, Request("GET", path, query, Headers()))
    request = Request("GET", path, query, call.request.headers)
    return await relay.upgrade(call.backends, address, request)


def _pod_path(call: Call) -> str:
    return f"{quote(call.namespace)}/{quote(call.info.name)}"


def _pairs(call: Call) -> list[tuple[str, str]]:
    return parse_qsl(call.request.query, keep_blank_values=True)
