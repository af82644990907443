"""Responses and WebSockets of a backend, passed on to the client as they arrive."""

from __future__ import annotations

from kvestigate.cluster.plane.egress.dialer import AddressRefused
from kvestigate.cluster.plane.egress.locate import Address, Kubelet, PodPort
from kvestigate.cluster.plane.egress.reach import Egress
from kvestigate.cluster.plane.egress.tunnel import until_one_ends
from kvestigate.errors import ApiError, BadRequest, KvestigateError, from_status
from kvestigate.http import handshake
from kvestigate.http.message import Headers, Incoming, Request, Response, Upgrade, WebSocket
from kvestigate.http.pool import UpgradeRefused

HEAD_SECONDS = 30.0
"""How long a backend may take to send the head of its response."""

REFUSAL_BYTES = 64 * 1024

Backend = Kubelet | Address | PodPort

_IDENTITY = ("impersonate-", "x-remote-")
"""Headers by which servers tell each other who asks. A backend may believe them of this server."""
_BEARER = "base64url.bearer.authorization.k8s.io."
"""A subprotocol that is the token of a web page, which cannot send headers with a WebSocket."""

# Headers of one connection (RFC 9110, 7.6.1), or set anew for the next one.
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
# The client's credentials are for this server only; encodings and WebSockets are negotiated on each
# side.
_PRIVATE = frozenset(
    {
        "accept-encoding",
        "authorization",
        "sec-websocket-extensions",
        "sec-websocket-key",
        "sec-websocket-protocol",
        "sec-websocket-version",
    }
)


async def send(backends: Egress, address: Backend, request: Request) -> Incoming:
    """The backend's response, as soon as its head was read; ApiError if there is none."""
    client = await backends.client(address)
    try:
        return await client.send(request, timeout=HEAD_SECONDS)
    except AddressRefused:
        raise
    except KvestigateError as failure:
        target = f"{address}{request.path}{'?' if request.query else ''}{request.query}"
        verb = request.method.capitalize()
        raise ApiError(f'{verb} "{target}": {failure.message}') from failure


async def upgrade(
    backends: Egress,
    address: Backend,
    request: Request,
    *,
    headers: Headers | None = None,
) -> Upgrade | Response:
    """A WebSocket through to the backend, with the subprotocol that the backend chooses."""
    try:
        handshake.accept(request, None)  # before a connection is opened
    except ValueError as problem:
        raise BadRequest(f"no valid WebSocket request: {problem}") from None
    client = await backends.client(address)
    upgrade_request = Request("GET", request.path, request.query, headers or Headers())
    offers = handshake.offered_subprotocols(request)
    offered = [name for name in offers if not name.startswith(_BEARER)]
    try:
        socket = await client.upgrade(upgrade_request, offered, timeout=HEAD_SECONDS)
    except UpgradeRefused as refusal:
        return Response(refusal.status, forwarded(refusal.headers), refusal.body)
    except AddressRefused:
        raise
    except KvestigateError as failure:
        raise _dial_error(failure) from failure
    return Upgrade(lambda front: pipe(front, socket), socket.subprotocol)


async def refusal_without_upgrade(backends: Egress, address: Backend, request: Request) -> ApiError:
    """The backend's error for a stream that was requested without a protocol upgrade."""
    client = await backends.client(address)
    try:
        incoming = await client.send(request, timeout=HEAD_SECONDS)
    except AddressRefused:
        raise
    except KvestigateError as failure:
        raise _dial_error(failure) from failure
    if incoming.status < 400:
        await incoming.aclose()
        return BadRequest("Upgrade request required")
    return await refusal(incoming)


def _dial_error(failure: KvestigateError) -> ApiError:
    return ApiError(f"error dialing backend: {failure.message}")


async def pipe(front: WebSocket, back: WebSocket) -> None:
    """Copy messages both ways until one side closes; then close the backend's."""
    try:
        await until_one_ends(_copy(front, back), _copy(back, front))
    finally:
        await back.close()


async def _copy(source: WebSocket, target: WebSocket) -> None:
    try:
        while (message := await source.receive()) is not None:
            await target.send(message)
    except KvestigateError:
        return  # the connection of one side is lost


def forwarded(headers: Headers) -> list[tuple[str, str]]:
    """The headers that a proxy passes on."""
    named = {token.strip().lower() for token in headers.get("connection").split(",")}
    dropped = _HOP_BY_HOP | _PRIVATE | named
    return [
        (name, value)
        for name, value in headers
        if name not in dropped and not name.startswith(_IDENTITY)
    ]


class Body:
    """The body of a backend's response as it arrives; fails if the backend breaks off.

    Not a generator: a generator that was never started would not give the connection back.
    """

    def __init__(self, incoming: Incoming) -> None:
        self._incoming = incoming
        self._pieces = aiter(incoming)

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it."""
        await self._incoming.aclose()


async def refusal(incoming: Incoming) -> ApiError:
    """A kubelet's error response as an ApiError, with its body as the message."""
    try:
        text = (await incoming.read(limit=REFUSAL_BYTES)).decode(errors="replace").strip()
    except KvestigateError:
        text = ""
    finally:
        await incoming.aclose()
    return from_status({"message": text}, code=incoming.status)
