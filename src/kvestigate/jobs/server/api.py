"""The launcher's REST API: the same functions as in process, for the user of each request.

Stateless: several servers may run side by side, since the cluster's API is the only state.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from inspect import Parameter, Signature, signature
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import (
    APIRouter,
    Body,
    Depends,
    FastAPI,
    Header,
    Query,
    Request,
    Response,
    Security,
    WebSocket,
)
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.security import APIKeyHeader, HTTPBearer
from pydantic import StringConstraints
from starlette.types import ASGIApp, Receive, Scope, Send

from kvestigate import __version__, errors
from kvestigate.client.api import Api
from kvestigate.http.hosts import is_own
from kvestigate.jobs import answers
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import CALLS, WHOLE, Call, ExecRequest, LogRequest
from kvestigate.jobs.server.authn import authenticator
from kvestigate.jobs.server.bridge import bridge
from kvestigate.jobs.server.settings import Settings
from kvestigate.jobs.tasks.pieces import MOST_PIECES

_LARGEST = 1 << 20
"""Largest request in bytes, about the limit of Kubernetes for an object."""

_INT32 = 2**31 - 1
_AFTER = r"^\d{1,6}:\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"
"""`0:2006-01-02T15:04:05Z`: a node and a second of its log."""


async def _launcher(
    request: Request,
    x_user: Annotated[
        str | None,
        Header(description="Your user name, percent-encoded; not needed with a token."),
    ] = None,
) -> InProcess:
    # More than one header is refused, which FastAPI would not notice.
    return await _of(request)


async def _of(request: Request | WebSocket) -> InProcess:
    state = request.app.state
    caller = await state.authenticator.caller(request.headers.getlist)
    quotas = state.settings.quotas
    return InProcess(state.api, caller.user, role=caller.role, quotas=quotas, kept=state.kept)


Launching = Annotated[InProcess, Depends(_launcher)]
Count = Annotated[int | None, Query(ge=0, le=_INT32)]
Seconds = Annotated[int | None, Query(ge=1, le=_INT32)]
After = Annotated[
    list[Annotated[str, StringConstraints(pattern=_AFTER)]] | None, Query(max_length=1000)
]
_PARAMETERS: Mapping[str, Any] = {
    "all_users": Annotated[bool, Query(description="Those of all users; for administrators.")],
    "files": Annotated[str, Query(max_length=64, description="SHA-256 of the uploaded files.")],
    "piece": Annotated[
        list[str] | None, Query(max_length=MOST_PIECES, description="SHA-256 of their pieces.")
    ],
    "strict": Annotated[bool, Query(description="Fail if a field would be ignored.")],
    "size": Annotated[str, Query(max_length=40)],
    "path": Annotated[str, Query(max_length=4096)],
    "task": Annotated[dict[str, Any], Body()],
    "digests": Annotated[list[str], Body(max_length=10 * MOST_PIECES)],
}
"""The form of each parameter of a call, by its name; those of paths are text."""
_OCTETS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Every answer that is not a success."""

    detail: str
    """What went wrong. The header `X-Hint` has the way out, percent-encoded."""


def _refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": Refusal, "description": HTTPStatus(code).phrase} for code in codes}


_ANY_REFUSALS = _refusals(411, 413, 421, 500)
_REFUSALS = _ANY_REFUSALS | _refusals(400, 401, 403, 404, 409, 422, 429, 503, 504)
"""What Kubernetes refuses is refused with its code."""
_IDENTITY = [
    Security(
        APIKeyHeader(
            name="X-User",
            scheme_name="user",
            auto_error=False,
            description="The user's name; it proves nothing, so only servers on loopback take it.",
        )
    ),
    Security(
        HTTPBearer(
            scheme_name="token",
            auto_error=False,
            description="A token of the server's configuration, or an OpenID Connect ID token.",
        )
    ),
]
router = APIRouter()
public = APIRouter()


@public.get("/")
async def health() -> dict[str, str]:
    return {"status": "ok", "service": "k8s-cli-api"}


def _endpoint(call: Call[..., Any]) -> Callable[..., Awaitable[Response]]:
    """The function that FastAPI calls, and describes by its signature."""

    async def endpoint(launcher: InProcess, **given: Any) -> Response:
        answer = await launcher.ask(call, given["body"] if whole else call.input(**given))
        # Thousands of tasks would take longer to validate than to read.
        return Response(msgspec.json.encode(answer), media_type="application/json")

    whole = call.body == WHOLE
    given: dict[str, Any] = {"launcher": (Launching, Parameter.empty)}
    if whole:
        given["body"] = (call.input, Parameter.empty)
    else:
        for name, parameter in signature(call.input).parameters.items():
            given[name] = (_PARAMETERS.get(name, str), parameter.default)
    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=form, default=default)
        for name, (form, default) in given.items()
    ]
    described: Any = endpoint
    described.__signature__ = Signature(parameters)
    return endpoint


@router.get("/tasks/{task_id}/watch", response_class=StreamingResponse)
async def watch_task(launcher: Launching, task_id: str) -> StreamingResponse:
    """The task and its nodes, a line of JSON after each change, until it has ended."""
    await launcher.task(task_id)
    return StreamingResponse(_views(launcher, task_id), media_type="application/x-ndjson")


@router.get("/tasks/{task_id}/logs", response_class=StreamingResponse)
async def task_logs(
    launcher: Launching,
    task_id: str,
    follow: bool = True,
    tail: Count = None,
    since_seconds: Seconds = None,
    node: Count = None,
    timestamps: bool = False,
    after: After = None,
) -> StreamingResponse:
    """The lines of all nodes as they come, until the task ends.

    Who was cut off asks again, with the second of the last line of each node in `after`.
    """
    # What is not there must be said before the answer begins.
    task = await launcher.task(task_id)
    if node is not None and node >= task.metadata.num_nodes:
        raise errors.NotFound(f"Task {task_id} has no node {node}")
    times = dict(text.split(":", 1) for text in after or ())
    seen = {int(index): time for index, time in times.items()}
    wanted = LogRequest(follow, tail, since_seconds, node, timestamps, seen)
    return StreamingResponse(_lines(launcher, task_id, wanted), media_type="text/plain")


@router.websocket("/tasks/{task_id}/exec")
async def run_in_task(websocket: WebSocket, task_id: str) -> None:
    """A command in a node, over Kubernetes' own channel protocol."""
    query = websocket.query_params
    try:
        launcher = await _of(websocket)
        node = query.get("node", "0")
        request = ExecRequest(
            tuple(query.getlist("command")),
            int(node) if node.isdecimal() else 0,
            query.get("stdin") == "true",
            query.get("tty") == "true",
        )
        session = await launcher.session(task_id, request)
    except errors.KvestigateError as error:
        await websocket.send_denial_response(await _refuse(websocket, error))
        return
    await bridge(websocket, session)


@router.put("/files/{digest}", status_code=204, openapi_extra=_OCTETS)
async def put_piece(launcher: Launching, digest: str, request: Request) -> None:
    """Send a piece, named by its SHA-256."""
    await launcher.put_piece(digest, await request.body())


def application(api: Api, settings: Settings | None = None, *, kept: bool = False) -> FastAPI:
    """The app for one cluster; `kept` says that a `Keeper` runs beside it."""
    app = FastAPI(title="k8s-cli-api", version=__version__, docs_url=None, redoc_url=None)
    app.state.api = api
    app.state.settings = settings or Settings()
    app.state.authenticator = authenticator(app.state.settings, time.time)
    app.state.kept = kept
    for call in CALLS:
        app.add_api_route(
            call.path,
            _endpoint(call),
            methods=[call.method],
            name=call.name,
            description=call.description,
            response_model=call.answer,
            responses=_REFUSALS,
            dependencies=_IDENTITY,
        )
    app.include_router(router, responses=_REFUSALS, dependencies=_IDENTITY)
    app.include_router(public, responses=_ANY_REFUSALS)
    app.middleware("http")(_limit_body)
    app.add_middleware(_OwnHost, listed=app.state.settings.hosts)
    app.exception_handler(errors.KvestigateError)(_refuse)
    app.exception_handler(RequestValidationError)(_refuse_form)
    return app


async def _lines(launcher: InProcess, task_id: str, wanted: LogRequest) -> AsyncIterator[bytes]:
    try:
        async with aclosing(launcher.logs(task_id, wanted)) as lines:
            async for line in lines:
                yield line + b"\n"
    except errors.KvestigateError as error:
        # The status has been sent: the reader learns it from the last line.
        yield f"error: {error.message}\n".encode()


async def _views(launcher: InProcess, task_id: str) -> AsyncIterator[bytes]:
    async with aclosing(launcher.watch(task_id)) as views:
        async for view in views:
            yield msgspec.json.encode(view) + b"\n"


class _OwnHost:
    """Refuses requests and WebSockets whose Host header does not name this server."""

    def __init__(self, app: ASGIApp, listed: frozenset[str]) -> None:
        self._app = app
        self._listed = listed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        address, port = scope["server"]
        if len(hosts) == 1 and is_own(hosts[0], address, port, self._listed):
            await self._app(scope, receive, send)
            return
        refusal = _detail(
            421,
            f"Host: {', '.join(hosts)!r} is not a name of this server",
            "use the server's address, or let its operator add the name to `hosts` in --config",
        )
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal)
        else:
            await refusal(scope, receive, send)


async def _limit_body(
    request: Request, proceed: Callable[[Request], Awaitable[Response]]
) -> Response:
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers:
        return _detail(411, "the request needs a Content-Length header")
    if not length.isdecimal() or int(length[:12]) > _LARGEST:
        return _detail(413, f"the request is larger than {_LARGEST} bytes")
    return await proceed(request)


async def _refuse(request: Request | WebSocket, error: Exception) -> Response:
    code = 500
    if isinstance(error, errors.ApiError):
        code = error.http_code
    elif isinstance(error, errors.UsageError):
        code = 422
    elif isinstance(error, errors.NoCluster):
        code = 503
    elif isinstance(error, errors.DeadlineExceeded):
        code = 504
    hint = error.hint if isinstance(error, errors.KvestigateError) else None
    return _detail(code, str(error), hint)


async def _refuse_form(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
        for problem in error.errors()
    ]
    return _detail(422, "; ".join(problems))


def _detail(code: int, message: str, hint: str | None = None) -> Response:
    # The body has the form that clients know; what would help comes beside it.
    headers = {answers.HINT: quote(hint)} if hint else None
    return JSONResponse({"detail": message}, status_code=code, headers=headers)
