"""A `Launcher` that asks the launcher's server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec

from kvestigate import __version__, errors
from kvestigate.client.lines import Lines
from kvestigate.client.streams import Session
from kvestigate.http.message import Headers, Incoming, Request, WebSocket
from kvestigate.http.pool import HttpClient, UpgradeRefused
from kvestigate.http.tls import client_context
from kvestigate.jobs import answers
from kvestigate.jobs.answers import Explanation
from kvestigate.jobs.interface import ExecRequest, LogRequest, VolumeRequest
from kvestigate.jobs.remote.resuming import unbroken
from kvestigate.jobs.tasks.pieces import Files
from kvestigate.jobs.users import User

T = TypeVar("T")

_TIMEOUT = 60.0
_START_TIMEOUT = 330.0
"""For what waits until a node runs."""
_LARGEST = 256 << 20


class Remote:
    """The server at `url`, as `user` or as whoever has `token`. An async context manager."""

    def __init__(self, url: str, user: User | None, token: str = "") -> None:
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            port = 0
        if parts.scheme not in ("http", "https") or not parts.hostname or not port:
            raise errors.ConfigError(
                f"K8S_CLI_API_URL: {url!r} is no URL of a server",
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

    async def whoami(self) -> answers.WhoAmI:
        return await self._ask("GET", "/whoami", answers.WhoAmI)

    async def plan(
        self, document: Mapping[str, Any], files: Files | None = None
    ) -> answers.PlanResponse:
        path = f"/tasks/plan?{_uploaded(files)}"
        return await self._ask("POST", path, answers.PlanResponse, document)

    async def submit(
        self, document: Mapping[str, Any], files: Files | None = None
    ) -> answers.TaskSubmitResponse:
        path = f"/tasks/submit?{_uploaded(files)}"
        return await self._ask("POST", path, answers.TaskSubmitResponse, document)

    async def list_tasks(self, *, all_users: bool) -> answers.TaskListResponse:
        return await self._ask("GET", f"/tasks?{_all(all_users)}", answers.TaskListResponse)

    async def history(self, *, all_users: bool) -> answers.HistoryResponse:
        return await self._ask("GET", f"/history?{_all(all_users)}", answers.HistoryResponse)

    async def task(self, task_id: str) -> answers.TaskStatus:
        return await self._ask("GET", f"/tasks/{_part(task_id)}", answers.TaskStatus)

    async def watch(self, task_id: str) -> AsyncGenerator[answers.TaskView, None]:
        async with aclosing(self._stream(f"/tasks/{_part(task_id)}/watch")) as lines:
            async for line in lines:
                yield msgspec.json.decode(line, type=answers.TaskView)

    async def endpoint(self, task_id: str) -> answers.EndpointResponse:
        path = f"/tasks/{_part(task_id)}/endpoint"
        return await self._ask("GET", path, answers.EndpointResponse)

    async def why(self, task_id: str) -> Explanation:
        return await self._ask("GET", f"/tasks/{_part(task_id)}/why", Explanation)

    async def stop(self, task_id: str) -> answers.TaskStopResponse:
        path = f"/tasks/{_part(task_id)}/stop"
        return await self._ask("POST", path, answers.TaskStopResponse)

    async def stop_all(self, *, all_users: bool) -> answers.TaskStopAllResponse:
        path = f"/tasks/stop?{_all(all_users)}"
        return await self._ask("POST", path, answers.TaskStopAllResponse)

    async def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        def connect(asked: LogRequest) -> AsyncGenerator[bytes, None]:
            return self._stream(f"/tasks/{_part(task_id)}/logs?{_lines_of(asked)}")

        lines = unbroken(connect, request) if request.follow else connect(request)
        async with aclosing(lines):
            async for line in lines:
                yield line

    async def session(self, task_id: str, request: ExecRequest) -> Session:
        asked = [("node", str(request.node)), *(("command", word) for word in request.command)]
        asked += [("stdin", "true")] * request.stdin + [("tty", "true")] * request.tty
        path = f"{self._base}/tasks/{_part(task_id)}/exec"
        opening = Request("GET", path, urlencode(asked), Headers(self._identity), b"")
        return _RemoteSession(self._client, opening)

    async def missing_pieces(self, digests: Sequence[str]) -> answers.MissingPieces:
        return await self._ask("POST", "/files/missing", answers.MissingPieces, list(digests))

    async def put_piece(self, digest: str, content: bytes) -> None:
        await self._put(f"/files/{_part(digest)}", content)

    async def _put(self, path: str, content: bytes) -> None:
        incoming = await self._send("PUT", path, content, timeout=_START_TIMEOUT)
        await incoming.aclose()

    async def _stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """The lines of an answer that goes on."""
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

    async def create_volume(self, request: VolumeRequest) -> answers.VolumeCreateResponse:
        body = msgspec.to_builtins(request)
        return await self._ask("POST", "/volumes/create", answers.VolumeCreateResponse, body)

    async def list_volumes(self, *, all_users: bool) -> answers.VolumeListResponse:
        return await self._ask("GET", f"/volumes?{_all(all_users)}", answers.VolumeListResponse)

    async def volume(self, volume_id: str) -> answers.VolumeStatus:
        return await self._ask("GET", f"/volumes/{_part(volume_id)}", answers.VolumeStatus)

    async def resize_volume(self, volume_id: str, size: str) -> answers.VolumeResizeResponse:
        path = f"/volumes/{_part(volume_id)}/resize?{urlencode({'size': size})}"
        return await self._ask("POST", path, answers.VolumeResizeResponse)

    async def volume_files(self, volume_id: str, path: str) -> answers.VolumeFiles:
        target = f"/volumes/{_part(volume_id)}/files?{urlencode({'path': path})}"
        return await self._ask("GET", target, answers.VolumeFiles, timeout=_START_TIMEOUT)

    async def delete_volume(self, volume_id: str) -> answers.VolumeDeleteResponse:
        path = f"/volumes/{_part(volume_id)}"
        return await self._ask("DELETE", path, answers.VolumeDeleteResponse)

    async def _ask(
        self, method: str, path: str, type: type[T], body: Any = None, *, timeout: float = _TIMEOUT
    ) -> T:
        incoming = await self._send(method, path, body, timeout=timeout)
        answer = await incoming.read(limit=_LARGEST)
        try:
            return msgspec.json.decode(answer, type=type)
        except msgspec.DecodeError as error:
            raise errors.ConnectionFailed(
                f"{self._url} answered {method} {path} with something else: {error}",
                hint="K8S_CLI_API_URL should be that of a `k8s-cli serve`",
            ) from error

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


def _uploaded(files: Files | None) -> str:
    if files is None:
        return ""
    return urlencode([("files", files.digest), *(("piece", each) for each in files.pieces)])


def _lines_of(request: LogRequest) -> str:
    asked = [
        ("tail", request.tail),
        ("since_seconds", request.since_seconds),
        ("node", request.node),
        *(("after", f"{index}:{time}") for index, time in request.after.items()),
    ]
    flags = {"follow": request.follow, "timestamps": request.timestamps}
    given = [(name, "true" if value else "false") for name, value in flags.items()]
    return urlencode(given + [(name, str(value)) for name, value in asked if value is not None])


def _all(all_users: bool) -> str:
    return f"all_users={'true' if all_users else 'false'}"


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
