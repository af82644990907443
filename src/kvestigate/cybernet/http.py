"""The HTTP front: `/info` for anybody; `/api/v1/op/NAME` and `/mcp` for those with a token."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from kvestigate.cybernet.bodies import NOTHING, Answer, Body
from kvestigate.cybernet.gateway import Caller, Gateway
from kvestigate.cybernet.info import Offer, info_of, offers_of
from kvestigate.cybernet.refusals import (
    Malformed,
    NoSuchThing,
    NotAllowed,
    Refused,
    TooLarge,
    WrongMethod,
)
from kvestigate.cybernet.spec import HttpListen, TlsFiles
from kvestigate.errors import InputError, UsageError
from kvestigate.http.intake import Unserved
from kvestigate.http.limits import Limits
from kvestigate.http.message import Headers, Request, Response
from kvestigate.http.server import Server, serve
from kvestigate.http.tls import server_context

if TYPE_CHECKING:
    from kvestigate.cybernet.mcp import McpFront

OPERATIONS = "/api/v1/op/"
MCP = "/mcp"
MOST_BYTES = 2 * 1024 * 1024 * 1024
"""Of a request: files travel inside it, and from there to disk."""
STRANGERS_BYTES = 64 * 1024
"""Of a request whose token is not known: nothing is kept for those who will be refused."""

_JSON = ("content-type", "application/json")


def handler(gateway: Gateway) -> Callable[[Request], Awaitable[Response]]:
    """What answers the requests of agents."""
    mcp, offers = _mcp_front(gateway), offers_of(gateway)

    async def handle(request: Request) -> Response:
        body = request.sink
        if not isinstance(body, Body):  # of a stranger, or so short that it came at once
            body = Body(gateway.room)
            body.write(request.body)
        try:
            if request.path == "/info":
                return await _info(gateway, offers, request)
            return await _answer(gateway, mcp, request, body)
        finally:
            body.close()

    return handle


def _mcp_front(gateway: Gateway) -> McpFront | None:
    """The SDK is imported only where it is served: it takes a second and 35 MB."""
    if not gateway.space.listen.mcp_http:
        return None
    from kvestigate.cybernet.mcp import McpFront

    return McpFront(gateway)


async def _answer(gateway: Gateway, mcp: McpFront | None, request: Request, body: Body) -> Response:
    if request.path.startswith(OPERATIONS):
        return await _operation(gateway, request, body)
    if request.path == MCP and mcp is not None:
        return await _message(gateway, mcp, request, body)
    unknown = NoSuchThing(
        f"no such path: {request.path[:200]}",
        "route",
        hint=f"there are GET /info, POST {OPERATIONS}NAME" + (f" and POST {MCP}" if mcp else ""),
    )
    return _refusal(await _refused(gateway, request, unknown))


async def listening(gateway: Gateway, listen: HttpListen) -> Server:
    """A server that agents can call from now on."""
    if not gateway.space.tokens:
        raise UsageError(
            "auth.tokens is empty, so no agent could authenticate",
            hint="`kvestigate cybernet hash-token` makes an entry of a token",
        )
    limits = Limits(
        body_bytes=MOST_BYTES,
        body_of=partial(_most_of, gateway),
        sink_of=partial(_sink_of, gateway),
    )
    tls = None if listen.tls is None else _tls(listen.tls)
    try:
        return await serve(
            handler(gateway),
            host=listen.host,
            port=listen.port,
            tls=tls,
            limits=limits,
            refusal=partial(_turned_away, gateway),
        )
    except OSError as error:
        raise UsageError(
            f"listen.http.address: cannot listen on {listen.host}:{listen.port}: {error.strerror}",
            hint="choose another port, or 0 for one that is free",
        ) from error


def _tls(files: TlsFiles) -> ssl.SSLContext:
    found: dict[str, bytes] = {}
    for name, path in (("certificate", files.cert), ("key", files.key)):
        try:
            found[name] = Path(path).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"the {name} cannot be read: {reason}", where=path) from error
    try:
        return server_context(**found)
    except InputError as error:
        raise InputError(error.message, where=files.cert, hint=error.hint) from error


def _identity(gateway: Gateway, headers: Headers) -> str:
    """Whose token came; empty if nobody's."""
    try:
        return gateway.identify(headers.get_all("authorization"))
    except Refused:
        return ""


def _most_of(gateway: Gateway, headers: Headers) -> int:
    return MOST_BYTES if _identity(gateway, headers) else STRANGERS_BYTES


def _sink_of(gateway: Gateway, headers: Headers) -> Body | None:
    return Body(gateway.room) if _identity(gateway, headers) else None


async def _info(gateway: Gateway, offers: tuple[Offer, ...], request: Request) -> Response:
    if request.method not in ("GET", "HEAD"):
        wrong = WrongMethod(f"{request.method}: /info is only read", "route")
        return _refusal(await _refused(gateway, request, wrong), allow="GET, HEAD")
    return Response(200, [_JSON, _PRIVATE], msgspec.json.encode(info_of(gateway, offers)))


_PRIVATE = ("cache-control", "no-store")


async def _operation(gateway: Gateway, request: Request, body: Body) -> Response:
    if request.method != "POST":
        wrong = WrongMethod(f"{request.method}: operations are called", "route")
        return _refusal(await _refused(gateway, request, wrong), allow="POST")
    try:
        identity = gateway.identify(request.headers.get_all("authorization"))
        parameters = await body.value()
    except Refused as refusal:
        return _refusal(await _refused(gateway, request, refusal))
    body.release()
    if parameters is NOTHING:
        parameters = {}
    caller = Caller(identity, request.peer.address)
    outcome = await gateway.call(caller, _name_in(request.path), parameters)
    if outcome.result is None:
        return _refusal(outcome.refusal or Refused("there is no result", "defect"))
    if outcome.result.file is None:
        return Response(200, [_JSON, _PRIVATE], outcome.result.whole)
    return Response(200, [_JSON, _PRIVATE], _Sending(outcome.result))


async def _message(gateway: Gateway, mcp: McpFront, request: Request, body: Body) -> Response:
    """A message of MCP. Whoever sends it is known before the protocol is looked at."""
    try:
        if request.method != "POST":
            raise WrongMethod(f"{request.method}: messages of MCP are posted", "route")
        _check_origin(request.headers)
        identity = gateway.identify(request.headers.get_all("authorization"))
        caller = Caller(identity, request.peer.address)
        try:
            await body.value()
        except Malformed as refusal:  # the protocol has its own answer to that
            await gateway.refuse(caller, "", refusal)
            body.discard()
        return await mcp.answer(caller, request, body)
    except Refused as refusal:
        return _refusal(await _refused(gateway, request, refusal), allow="POST")


def _check_origin(headers: Headers) -> None:
    """NotAllowed if a page of another site has its reader's browser call us."""
    origin, host = headers.get("origin"), headers.get("host")
    if origin and origin.partition("://")[2].lower() != host.lower():
        raise NotAllowed(f"requests from {origin[:200]} are not answered", "origin")


class _Sending:
    """An answer on its way, which is closed however far it comes."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._pieces = answer.pieces()

    def __aiter__(self) -> _Sending:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        await self._pieces.aclose()
        self._answer.close()


async def _turned_away(gateway: Gateway, unserved: Unserved) -> Response:
    """Refuse what never became a request: too large, too slow, no HTTP."""
    refusal: Refused = Malformed(unserved.reason, "request")
    if unserved.status == 413:
        known = f"a request with a known token may have {MOST_BYTES} bytes"
        refusal = TooLarge(unserved.reason, "body", hint=known)
    answered = await _refused(gateway, unserved, refusal)
    return _refusal(answered, status=unserved.status if answered is refusal else 0)


async def _refused(gateway: Gateway, asked: Request | Unserved, refusal: Refused) -> Refused:
    """Record that a request was turned away; what it is to be answered with."""
    caller = Caller(_identity(gateway, asked.headers), asked.peer.address)
    return await gateway.refuse(caller, _name_in(asked.path), refusal)


def _name_in(path: str) -> str:
    """The operation that is called there; empty if none is."""
    return unquote(path.removeprefix(OPERATIONS)) if path.startswith(OPERATIONS) else ""


def _refusal(refusal: Refused, *, status: int = 0, allow: str = "") -> Response:
    headers = [_JSON, _PRIVATE]
    if refusal.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    if refusal.retry_after is not None:
        headers.append(("retry-after", str(refusal.retry_after)))
    if allow and refusal.status == 405:
        headers.append(("allow", allow))
    body = msgspec.json.encode(refusal.envelope())
    return Response(status or refusal.status, headers, body)
