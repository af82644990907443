"""Answers and WebSockets of a backend, handed on to the client as they come."""

from __future__ import annotations

import asyncio

from kvestigate.cluster.plane.egress.locate import Address, PodPort
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.errors import ApiError, BadRequest, KvestigateError, from_status
from kvestigate.http import handshake
from kvestigate.http.message import Headers, Incoming, Request, Response, Upgrade, WebSocket
from kvestigate.http.pool import UpgradeRefused

HEAD_SECONDS = 30.0
"""How long a backend may take to begin its answer."""

REFUSAL_BYTES = 64 * 1024

# Of one connection only (RFC 9110, 7.6.1), or set anew for the next one.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# The client's credentials are for us, and a WebSocket is negotiated anew on each side.
_PRIVATE = frozenset(
    {
        "authorization",
        "sec-websocket-extensions",
        "sec-websocket-key",
        "sec-websocket-protocol",
        "sec-websocket-version",
    }
)


async def ask(backends: Backends, address: Address | PodPort, request: Request) -> Incoming:
    """The backend's answer, its head read; ApiError if there is none."""
    client = await backends.client(address)
    try:
        return await client.send(request, timeout=HEAD_SECONDS)
    except KvestigateError as failure:
        target = f"{address}{request.path}{'?' if request.query else ''}{request.query}"
        verb = request.method.capitalize()
        raise ApiError(f'{verb} "{target}": {failure.message}') from failure


async def upgrade(
    backends: Backends,
    address: Address | PodPort,
    request: Request,
    *,
    headers: Headers | None = None,
) -> Upgrade | Response:
    """A WebSocket through to the backend, with the subprotocol that the backend chooses."""
    try:
        handshake.accept(request, None)  # before anything is opened that would stay open
    except ValueError as problem:
        raise BadRequest(f"no valid WebSocket request: {problem}") from None
    client = await backends.client(address)
    asked = Request("GET", request.path, request.query, headers or Headers())
    offered = handshake.offered_subprotocols(request)
    try:
        socket = await client.upgrade(asked, offered, timeout=HEAD_SECONDS)
    except UpgradeRefused as refusal:
        return Response(refusal.status, passed_on(refusal.headers), refusal.body)
    except KvestigateError as failure:
        raise _away(failure) from failure
    return Upgrade(lambda front: pipe(front, socket), socket.subprotocol)


async def objection(backends: Backends, address: Address | PodPort, request: Request) -> ApiError:
    """What the backend has against a stream that is asked for without an upgrade."""
    client = await backends.client(address)
    try:
        incoming = await client.send(request, timeout=HEAD_SECONDS)
    except KvestigateError as failure:
        raise _away(failure) from failure
    if incoming.status < 400:
        await incoming.aclose()
        return BadRequest("Upgrade request required")
    return await refusal(incoming)


def _away(failure: KvestigateError) -> ApiError:
    return ApiError(f"error dialing backend: {failure.message}")


async def pipe(front: WebSocket, back: WebSocket) -> None:
    """Carry messages both ways until one side closes; then close the other."""
    tasks = [
        asyncio.create_task(_carry(front, back), name="to the backend"),
        asyncio.create_task(_carry(back, front), name="to the client"),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await back.close()


async def _carry(source: WebSocket, target: WebSocket) -> None:
    try:
        while (message := await source.receive()) is not None:
            await target.send(message)
    except KvestigateError:
        return  # one side is gone: the pipe ends


def passed_on(headers: Headers) -> list[tuple[str, str]]:
    """The fields that are for the one behind us."""
    named = {token.strip().lower() for token in headers.get("connection").split(",")}
    dropped = _HOP_BY_HOP | _PRIVATE | named
    return [(name, value) for name, value in headers if name not in dropped]


class Body:
    """The body of a backend's answer as it comes. If the backend breaks off, so do we.

    An object and not a generator, because it is closed even if it was never begun.
    """

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._pieces = aiter(incoming)

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Give the connection back, or up."""
        await self._incoming.aclose()


async def refusal(incoming: Incoming) -> ApiError:
    """The error for a kubelet's answer that is none."""
    try:
        text = (await incoming.read(limit=REFUSAL_BYTES)).decode(errors="replace").strip()
    except KvestigateError:
        text = ""
    finally:
        await incoming.aclose()
    return from_status({"message": text}, code=incoming.status)
