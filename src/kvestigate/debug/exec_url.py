"""`debug exec-url`: the URLs of an exec into a pod, and what the server says to a handshake.

The handshake is a real one: it runs `true` in the container.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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
from kvestigate.operation import Effect, Operation

_PATIENCE = 10.0
"""Seconds for the handshake, and again for the command that follows it."""


@dataclass(frozen=True, slots=True)
class ExecUrlOptions:
    pod: str
    container: str = ""
    """The pod's default container when empty."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """One attempt with one subprotocol."""

    offered: str
    accepted: bool
    answer: str
    """What the server said: the subprotocol and the command's status, or the refusal."""


@dataclass(frozen=True, slots=True)
class ExecUrlReport:
    namespace: str
    pod: str
    container: str
    node: str
    phase: str
    http_url: str
    """What SPDY clients POST to."""
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
            said = await _status(socket)
    except TimeoutError:
        said = f"no exit status within {_PATIENCE:g} s"
    finally:
        await socket.close()
    return Handshake(subprotocol, accepted=True, answer=f"101, speaks {socket.subprotocol}; {said}")


async def _status(socket: WebSocket) -> str:
    """What the error channel says about the command."""
    said = b""
    while (message := await socket.receive()) is not None:
        data = message.encode() if isinstance(message, str) else message
        if data[:1] == bytes((Channel.ERROR,)):
            said += data[1:]
    if not said:
        return "closed without an exit status"
    try:
        status = msgspec.json.decode(said)
    except msgspec.DecodeError:
        return said.decode("utf-8", "replace")
    if status.get("status") == "Success":
        return "the command `true` succeeded"
    return f"the command `true` failed: {status.get('message', '')}"


OPERATION = Operation(
    name="debug.exec-url",
    summary="Show the URLs of an exec into a pod, and attempt the handshake.",
    input=ExecUrlOptions,
    output=ExecUrlReport,
    # `true` changes nothing, though a server's audit log will say that we executed something.
    effect=Effect.READ,
    handler=collect,
)
