"""A `Launcher` that asks the launcher's server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from kvestigate import __version__, errors
from kvestigate.client.lines import Lines
from kvestigate.jobs import answers
from kvestigate.jobs.explain import Explanation
from kvestigate.jobs.identity import User
from kvestigate.jobs.launcher import LogRequest, VolumeRequest
from kvestigate.wire.message import Headers, Incoming, Request
from kvestigate.wire.pool import HttpClient
from kvestigate.wire.tls import client_context

T = TypeVar("T")

_TIMEOUT = 60.0
_LARGEST = 256 << 20


class _Failure(msgspec.Struct):
    detail: Any = ""


class Remote:
    """The server at `url`, as `user`. An async context manager."""

    def __init__(self, url: str, user: User) -> None:
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
        # A header holds ASCII; percent-encoding keeps different names different.
        self._user = quote(user.name, safe=" !#$&'()*+,/:;=?@[]-._~")
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

    async def submit(self, document: Mapping[str, Any]) -> answers.TaskSubmitResponse:
        return await self._ask("POST", "/tasks/submit", answers.TaskSubmitResponse, document)

    async def list_tasks(self, *, all_users: bool) -> answers.TaskListResponse:
        return await self._ask("GET", f"/tasks?{_all(all_users)}", answers.TaskListResponse)

    async def task(self, task_id: str) -> answers.TaskStatus:
        return await self._ask("GET", f"/tasks/{_part(task_id)}", answers.TaskStatus)

    async def why(self, task_id: str) -> Explanation:
        return await self._ask("GET", f"/tasks/{_part(task_id)}/why", Explanation)

    async def stop(self, task_id: str) -> answers.TaskStopResponse:
        path = f"/tasks/{_part(task_id)}/stop"
        return await self._ask("POST", path, answers.TaskStopResponse)

    async def stop_all(self, *, all_users: bool) -> answers.TaskStopAllResponse:
        path = f"/tasks/stop?{_all(all_users)}"
        return await self._ask("POST", path, answers.TaskStopAllResponse)

    async def logs(self, task_id: str, request: LogRequest) -> AsyncGenerator[bytes, None]:
        asked = {
            "follow": "true" if request.follow else "false",
            "tail": request.tail,
            "since_seconds": request.since_seconds,
            "node": request.node,
        }
        query = urlencode({key: value for key, value in asked.items() if value is not None})
        incoming = await self._send("GET", f"/tasks/{_part(task_id)}/logs?{query}")
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

    async def delete_volume(self, volume_id: str) -> answers.VolumeDeleteResponse:
        path = f"/volumes/{_part(volume_id)}"
        return await self._ask("DELETE", path, answers.VolumeDeleteResponse)

    async def _ask(
        self, method: str, path: str, type: type[T], body: Mapping[str, Any] | None = None
    ) -> T:
        incoming = await self._send(method, path, body)
        answer = await incoming.read(limit=_LARGEST)
        try:
            return msgspec.json.decode(answer, type=type)
        except msgspec.DecodeError as error:
            raise errors.ConnectionFailed(
                f"{self._url} answered {method} {path} with something else: {error}",
                hint="K8S_CLI_API_URL should be that of a `k8s-cli serve`",
            ) from error

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> Incoming:
        target, _, query = path.partition("?")
        fields = [("x-user", self._user), ("user-agent", f"kvestigate/{__version__}")]
        fields.append(("accept", "application/json"))
        data = b""
        if body is not None:
            fields.append(("content-type", "application/json"))
            data = msgspec.json.encode(body)
        request = Request(method, self._base + target, query, Headers(fields), data)
        incoming = await self._client.send(request, timeout=_TIMEOUT)
        if incoming.status >= 400:
            raise _failure(incoming.status, await incoming.read(limit=1 << 20))
        return incoming


def _failure(status: int, answer: bytes) -> errors.ApiError:
    try:
        message = str(msgspec.json.decode(answer, type=_Failure).detail)
    except msgspec.DecodeError:
        message = ""
    return errors.from_status({"message": message}, code=status)


def _all(all_users: bool) -> str:
    return f"all_users={'true' if all_users else 'false'}"


def _part(text: str) -> str:
    return quote(text, safe="") or "-"
