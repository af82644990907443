"""A `Launcher` that asks the launcher's server."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import fields
from types import TracebackType
from typing import Any, TypeVar, cast
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from kvestigate import __version__, errors
from kvestigate.client.lines import Lines
from kvestigate.client.streams import Session
from kvestigate.http.message import Headers, Incoming, Request, WebSocket
from kvestigate.http.pool import HttpClient, UpgradeRefused
from kvestigate.http.tls import client_context
from kvestigate.jobs import answers
from kvestigate.jobs.interface import WHOLE, Call, ExecRequest, Launcher, LogRequest
from kvestigate.jobs.remote.resuming import unbroken
from kvestigate.jobs.users import User

A = TypeVar("A")

_FIELD = re.compile(r"\{(\w+)\}")

_TIMEOUT = 60.0
_START_TIMEOUT = 330.0
"""Timeout of calls that wait until a pod runs."""
_LARGEST = 256 << 20


class Remote(Launcher):
    """The server at `url`, as `user` or as whoever has `token`. An async context manager."""

    def __init__(self, url: str, user: User | None, token: str = "") -> None:
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or not port:
            raise errors.ConfigError(
                f"K8S_CLI_API_URL: {url!r} is not the URL of a server",
                hint="write http://localhost:8000, or unset it to work without a server",
            )
        self._url = url
        self._base = parts.path.rstrip("/")
        self._identity: list[tuple[str, str]] = []
        if token:
            self._identity.append(("authorization", f"Bearer {token}"))
        elif user is not None:
            # A header holds ASCII; percent-encoding keeps different names different.
            self._identity.append(("x-user", quote(user.name, safe=" !#$&'()*+,/:;=?@[]-._~")))
        tls = client_context() if parts.scheme == "https" else None
        self._client = HttpClient(host=parts.hostname, port=port, tls=tls)

    async def __aenter__(self) -> Remote:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def ask(self, call: Call[..., A], input: Any) -> A:
        parameters = {field.name: field.default for field in fields(cast("Any", call.input))}
        given = {name: getattr(input, name) for name in parameters}
        path = _FIELD.sub(lambda field: _part(given.pop(field[1])), call.path)
        body = input if call.body == WHOLE else given.pop(call.body, None)
        query = {} if call.body == WHOLE else given
        words = [(key, _word(value)) for key, value in query.items() if value != parameters[key]]
        incoming = await self._send(
            call.method,
            f"{path}?{urlencode(words, doseq=True)}",
            body,
            timeout=_START_TIMEOUT if call.slow else _TIMEOUT,
        )
        answer = await incoming.read(limit=_LARGEST)
        try:
            return msgspec.json.decode(answer, type=call.answer)
        except msgspec.DecodeError as error:
            raise errors.ConnectionFailed(
                f"{self._url} answered {call.method} {path} with an unexpected body: {error}",
                hint="set K8S_CLI_API_URL to the URL that `k8s-cli serve` printed",
            ) from error

    async def watch(self, task_id: str) -> AsyncGenerator[answers.TaskView, None]:
        async with aclosing(self._stream(f"/tasks/{_part(task_id)}/watch")) as lines:
            async for line in lines:
                yield msgspec.json.decode(line, type=answers.TaskView)

    async def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        def connect(wanted: LogRequest) -> AsyncGenerator[bytes, None]:
            return self._stream(f"/tasks/{_part(task_id)}/logs?{_lines_of(wanted)}")

        lines = unbroken(connect, request) if request.follow else connect(request)
        async with aclosing(lines):
            async for line in lines:
                yield line

    async def session(self, task_id: str, request: ExecRequest) -> Session:
        query = [("node", str(request.node)), *(("command", word) for word in request.command)]
        query += [("stdin", "true")] * request.stdin + [("tty", "true")] * request.tty
        path = f"{self._base}/tasks/{_part(task_id)}/exec"
        opening = Request("GET", path, urlencode(query), Headers(self._identity), b"")
        return _RemoteSession(self._client, opening)

    async def put_piece(self, digest: str, content: bytes) -> None:
        incoming = await self._send(
            "PUT", f"/files/{_part(digest)}", content, timeout=_START_TIMEOUT
        )
        await incoming.aclose()

    async def _stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """The lines of a streamed answer."""
        incoming = await self._send("GET", path)
        lines = Lines()
        try:
            async for piece in incoming:
                for line in lines.feed(piece):
                    yield line
            if rest := lines.rest():
                yield rest
        finally:
            await incoming.aclose()

    async def _send(
        self, method: str, path: str, body: Any = None, *, timeout: float = _TIMEOUT
    ) -> Incoming:
        target, _, query = path.partition("?")
        fields = [*self._identity, ("user-agent", f"kvestigate/{__version__}")]
        fields.append(("accept", "application/json"))
        data = b""
        if isinstance(body, bytes):
            fields.append(("content-type", "application/octet-stream"))
            data = body
        elif body is not None:
            fields.append(("content-type", "application/json"))
            data = msgspec.json.encode(body)
        request = Request(method, self._base + target, query, Headers(fields), data)
        incoming = await self._client.send(request, timeout=timeout)
        if incoming.status >= 400:
            hint = incoming.headers.get(answers.HINT) or ""
            raise _failure(incoming.status, await incoming.read(limit=1 << 20), hint)
        return incoming


def _lines_of(request: LogRequest) -> str:
    numbers = [
        ("tail", request.tail),
        ("since_seconds", request.since_seconds),
        ("node", request.node),
        *(("after", f"{index}:{time}") for index, time in request.after.items()),
    ]
    flags = {"follow": request.follow, "timestamps": request.timestamps}
    given = [(name, "true" if value else "false") for name, value in flags.items()]
    return urlencode(given + [(name, str(value)) for name, value in numbers if value is not None])


def _word(value: Any) -> Any:
    """A parameter as the query has it."""
    return ("true" if value else "false") if isinstance(value, bool) else value


def _part(text: str) -> str:
    return quote(text, safe="") or "-"


class _RemoteSession(Session):
    """A process in a task, reached through the launcher's server."""

    def __init__(self, client: HttpClient, opening: Request) -> None:
        self._client = client
        self._opening = opening

    async def _connect(self, *subprotocols: str) -> WebSocket:
        try:
            return await self._client.upgrade(self._opening, subprotocols, timeout=_TIMEOUT)
        except UpgradeRefused as refused:
            raise _failure(refused.status, refused.body) from None


class _Refusal(msgspec.Struct):
    detail: Any = ""


def _failure(status: int, answer: bytes, hint: str = "") -> errors.ApiError:
    """The exception for an answer other than success."""
    try:
        message = str(msgspec.json.decode(answer, type=_Refusal).detail)
    except msgspec.DecodeError:
        message = ""
    error = errors.from_status({"message": message}, code=status)
    error.hint = unquote(hint) or error.hint
    return error
