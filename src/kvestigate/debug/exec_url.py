"""`debug exec-url`: the URLs of an exec into a pod, and the result of a handshake.

The handshake is real: it runs `true` in the container.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

import msgspec

from kvestigate.client.access import Access
from kvestigate.client.api import PODS, Api
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named
from kvestigate.client.streams import V4, V5, Channel
from kvestigate.errors import KvestigateError
from kvestigate.http.message import Request, WebSocket
from kvestigate.kube.containers import container_of
from kvestigate.kube.views.pods import Pod
from kvestigate.operation import param

_PATIENCE = 10.0
"""Seconds for the handshake, and again for the command that follows it."""


@dataclass(frozen=True, slots=True)
class ExecUrlOptions:
    pod: Annotated[str, param("The pod.", argument=True)]
    container: Annotated[
        str, param("Container to run in.", "-c", "--container", metavar="NAME")
    ] = ""
    """The pod's default container when empty."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """One attempt with one subprotocol."""

    offered: str
    accepted: bool
    answer: str
    """The subprotocol and the status of the command, or the server's refusal."""


@dataclass(frozen=True, slots=True)
class ExecUrlReport:
    namespace: str
    pod: str
    container: str
    node: str
    phase: str
    http_url: str
    """The URL that SPDY clients POST to."""
    websocket_url: str
    handshakes: tuple[Handshake, ...]

    @property
    def works(self) -> bool:
        return any(handshake.accepted for handshake in self.handshakes)


async def collect(access: Access, options: ExecUrlOptions) -> ExecUrlReport:
    async with connect(access) as api:
        return await _report(access, api, options)


async def _report(access: Access, api: Api, options: ExecUrlOptions) -> ExecUrlReport:
    namespace = access.namespace
    pod: Pod = await get_named(api, PODS, options.pod, Pod)
    container = container_of(pod, options.container)
    path = PODS.path(namespace=namespace, name=options.pod, subresource="exec")
    query = urlencode(
        [("command", "true"), ("container", container), ("stdout", "true"), ("stderr", "true")]
    )
    server = str(access.server)
    return ExecUrlReport(
        namespace=namespace,
        pod=options.pod,
        container=container,
        node=pod.spec.node_name,
        phase=pod.status.phase,
        http_url=f"{server}{path}?{query}",
        websocket_url=f"ws{server.removeprefix('http')}{path}?{query}",
        handshakes=(
            await _attempt(api, Request("GET", path, query), V5),
            await _attempt(api, Request("GET", path, query), V4),
        ),
    )


async def _attempt(api: Api, request: Request, subprotocol: str) -> Handshake:
    try:
        socket = await api.exchange.transport.upgrade(request, (subprotocol,), timeout=_PATIENCE)
    except KvestigateError as refused:
        return Handshake(subprotocol, accepted=False, answer=refused.message)
    try:
        async with asyncio.timeout(_PATIENCE):
            status = await _status(socket)
    except TimeoutError:
        status = f"no exit status within {_PATIENCE:g} s"
    finally:
        await socket.close()
    return Handshake(subprotocol, accepted=True, answer=f"101, {socket.subprotocol}; {status}")


async def _status(socket: WebSocket) -> str:
    """The status of the command, from the error channel."""
    received = b""
    while (message := await socket.receive()) is not None:
        data = message.encode() if isinstance(message, str) else message
        if data[:1] == bytes((Channel.ERROR,)):
            received += data[1:]
    if not received:
        return "the connection was closed without an exit status"
    try:
        status = msgspec.json.decode(received)
    except msgspec.DecodeError:
        return received.decode("utf-8", "replace")
    if status.get("status") == "Success":
        return "the command `true` succeeded"
    return f"the command `true` failed: {status.get('message', '')}"
