"""The HTTP front: `GET /info` for anybody, `POST /api/v1/op/NAME` for those with a token."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import msgspec

from kvestigate.cybernet.bodies import NOTHING, Answer, Body
from kvestigate.cybernet.gateway import Caller, Gateway
from kvestigate.cybernet.info import info_of
from kvestigate.cybernet.refusals import (
    Malformed,
    NoSuchThing,
    Refused,
    TooLarge,
    WrongMethod,
)
from kvestigate.cybernet.spec import HttpListen, TlsFiles
from kvestigate.cybernet.tokens import identify
from kvestigate.errors import InputError, UsageError
from kvestigate.http.limits import Limits
from kvestigate.http.message import Headers, Request, Response
from kvestigate.http.server import Server, serve
from kvestigate.http.tls import server_context

OPERATIONS = "/api/v1/op/"
MOST_BYTES = 2 * 1024 * 1024 * 1024
"""Of a request: files travel inside it, and from there to disk."""
STRANGERS_BYTES = 64 * 1024
"""Of a request whose token is not known: nothing is kept for those who will be refused."""

_JSON = ("content-type", "application/json")


def handler(gateway: Gateway) -> Callable[[Request], Awaitable[Response]]:
    """What answers the requests of agents."""

    async def handle(request: Request) -> Response:
        body = request.sink
        if not isinstance(body, Body):  # of a stranger, or so short that it came at once
            body = Body(gateway.room)
            body.write(request.body)
        try:
            return await _answer(gateway, request, body)
        finally:
            body.close()

    return handle


async def _answer(gateway: Gateway, request: Request, body: Body) -> Response:
    if request.path == "/info":
        return await _info(gateway, request)
    if request.path.startswith(OPERATIONS):
        return await _operation(gateway, request, body)
    return _refusal(
        NoSuchThing(
            f"no such path: {request.path[:200]}",
            "route",
            hint=f"there are GET /info and POST {OPERATIONS}NAME",
        )
    )


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
            refusal=_turned_away,
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


def _most_of(gateway: Gateway, headers: Headers) -> int:
    try:
        identify(gateway.space.tokens, headers.get_all("authorization"))
    except Refused:
        return STRANGERS_BYTES
    return MOST_BYTES


def _sink_of(gateway: Gateway, headers: Headers) -> Body | None:
    return Body(gateway.room) if _most_of(gateway, headers) == MOST_BYTES else None


async def _info(gateway: Gateway, request: Request) -> Response:
    if request.method not in ("GET", "HEAD"):
        return _refusal(WrongMethod(f"{request.method}: /info is only read", "route"), "GET, HEAD")
    return Response(200, [_JSON, _PRIVATE], msgspec.json.encode(info_of(gateway)))


_PRIVATE = ("cache-control", "no-store")


async def _operation(gateway: Gateway, request: Request, body: Body) -> Response:
    name = unquote(request.path.removeprefix(OPERATIONS))
    remote = request.peer.address
    if request.method != "POST":
        return _refusal(WrongMethod(f"{request.method}: operations are called", "route"), "POST")
    try:
        identity = identify(gateway.space.tokens, request.headers.get_all("authorization"))
    except Refused as refusal:
        return _refusal(await gateway.refuse(Caller("", remote), name, refusal))
    caller = Caller(identity, remote)
    try:
        parameters = await body.value()
    except Refused as refusal:
        return _refusal(await gateway.refuse(caller, name, refusal))
    body.release()
    if parameters is NOTHING:
        parameters = {}
    outcome = await gateway.call(caller, name, parameters)
    if outcome.result is None:
        return _refusal(outcome.refusal or Refused("there is no result", "defect"))
    if outcome.result.file is None:
        return Response(200, [_JSON, _PRIVATE], outcome.result.whole)
    return Response(200, [_JSON, _PRIVATE], _Sending(outcome.result))


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


def _turned_away(status: int, why: str) -> Response:
    """What never became a request: too large, too slow, no HTTP."""
    hint = f"with a token that is known it may have {MOST_BYTES} bytes"
    refusal: Refused = Malformed(why, "request")
    if status == 413:
        refusal = TooLarge(why, "body", hint=hint)
    return Response(status, [_JSON, _PRIVATE], msgspec.json.encode(refusal.envelope()))


def _refusal(refusal: Refused, allow: str = "") -> Response:
    headers = [_JSON, _PRIVATE]
    if refusal.status == 401:
        headers.append(("www-authenticate", "Bearer"))
    if refusal.retry_after is not None:
        headers.append(("retry-after", str(refusal.retry_after)))
    if allow:
        headers.append(("allow", allow))
    return Response(refusal.status, headers, msgspec.json.encode(refusal.envelope()))
