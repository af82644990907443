"""The launcher's REST API: the same functions as in process, for the user of each request.

Stateless: several servers may run side by side, since the cluster's API is the only state.
Who a user is, only the header `X-User` says; so it is served on loopback alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from fastapi import APIRouter, Body, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse

from kvestigate import __version__, errors
from kvestigate.client.api import Api
from kvestigate.jobs import answers
from kvestigate.jobs.explain import Explanation
from kvestigate.jobs.identity import User
from kvestigate.jobs.launcher import LogRequest, VolumeRequest
from kvestigate.jobs.manage import InProcess

_LARGEST = 1 << 20
"""Bytes of a request: about what Kubernetes takes for an object."""

_INT32 = 2**31 - 1


def _launcher(request: Request) -> InProcess:
    return InProcess(request.app.state.api, _user(request))


def _user(request: Request) -> User:
    names = request.headers.getlist("x-user")
    if len(names) != 1:
        raise errors.Unauthorized("the header X-User must say once who you are")
    try:
        return User(unquote(names[0], errors="strict"))
    except (errors.UsageError, UnicodeDecodeError) as error:
        raise errors.Unauthorized(f"X-User: {error}") from None


Launching = Annotated[InProcess, Depends(_launcher)]
AllUsers = Annotated[bool, Query(description="Those of all users.")]
Count = Annotated[int | None, Query(ge=0, le=_INT32)]
Seconds = Annotated[int | None, Query(ge=1, le=_INT32)]

router = APIRouter()


@router.get("/")
async def health() -> dict[str, str]:
    return {"status": "ok", "service": "k8s-cli-api"}


@router.post("/tasks/submit")
async def submit_task(
    launcher: Launching, task: Annotated[dict[str, Any], Body()]
) -> answers.TaskSubmitResponse:
    """Start a task; the body has the fields of a SkyPilot task file."""
    return await launcher.submit(task)


@router.post("/tasks/stop")
async def stop_tasks(
    launcher: Launching, all_users: AllUsers = False
) -> answers.TaskStopAllResponse:
    return await launcher.stop_all(all_users=all_users)


@router.get("/tasks", response_model=answers.TaskListResponse)
async def list_tasks(launcher: Launching, all_users: AllUsers = False) -> Response:
    listed = await launcher.list_tasks(all_users=all_users)
    # Thousands of tasks would take longer to validate than to read.
    return Response(msgspec.json.encode(listed), media_type="application/json")


@router.get("/tasks/{task_id}")
async def task_status(launcher: Launching, task_id: str) -> answers.TaskStatus:
    return await launcher.task(task_id)


@router.get("/tasks/{task_id}/why")
async def explain_task(launcher: Launching, task_id: str) -> Explanation:
    """Why the task waits or has failed, and what would make it run."""
    return await launcher.why(task_id)


@router.post("/tasks/{task_id}/stop")
async def stop_task(launcher: Launching, task_id: str) -> answers.TaskStopResponse:
    return await launcher.stop(task_id)


@router.get("/tasks/{task_id}/logs", response_class=StreamingResponse)
async def task_logs(
    launcher: Launching,
    task_id: str,
    follow: bool = True,
    tail: Count = None,
    since_seconds: Seconds = None,
    node: Count = None,
) -> StreamingResponse:
    """The lines of all nodes as they come, until the task ends."""
    # What is not there must be said before the answer begins.
    task = await launcher.task(task_id)
    if node is not None and node >= task.metadata.num_nodes:
        raise errors.NotFound(f"Task {task_id} has no node {node}")
    wanted = LogRequest(follow, tail, since_seconds, node)
    return StreamingResponse(_lines(launcher, task_id, wanted), media_type="text/plain")


@router.post("/volumes/create")
async def create_volume(launcher: Launching, volume: VolumeRequest) -> answers.VolumeCreateResponse:
    return await launcher.create_volume(volume)


@router.get("/volumes")
async def list_volumes(
    launcher: Launching, all_users: AllUsers = False
) -> answers.VolumeListResponse:
    return await launcher.list_volumes(all_users=all_users)


@router.get("/volumes/{volume_id}")
async def volume_status(launcher: Launching, volume_id: str) -> answers.VolumeStatus:
    return await launcher.volume(volume_id)


@router.delete("/volumes/{volume_id}")
async def delete_volume(launcher: Launching, volume_id: str) -> answers.VolumeDeleteResponse:
    return await launcher.delete_volume(volume_id)


def application(api: Api) -> FastAPI:
    """The app for one cluster."""
    app = FastAPI(title="k8s-cli-api", version=__version__, docs_url=None, redoc_url=None)
    app.state.api = api
    app.include_router(router)
    app.middleware("http")(_limit_body)
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


async def _limit_body(
    request: Request, proceed: Callable[[Request], Awaitable[Response]]
) -> Response:
    length = request.headers.get("content-length", "0")
    if "transfer-encoding" in request.headers:
        return _detail(411, "the length of the request must be given")
    if not length.isdecimal() or int(length[:12]) > _LARGEST:
        return _detail(413, f"the request is larger than {_LARGEST} bytes")
    return await proceed(request)


async def _refuse(request: Request, error: Exception) -> Response:
    code = 500
    if isinstance(error, errors.ApiError):
        code = error.http_code
    elif isinstance(error, errors.UsageError):
        code = 422
    elif isinstance(error, errors.NoCluster):
        code = 503
    elif isinstance(error, errors.DeadlineExceeded):
        code = 504
    return _detail(code, str(error))


async def _refuse_form(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [
        f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
        for problem in error.errors()
    ]
    return _detail(422, "; ".join(problems))


def _detail(code: int, message: str) -> Response:
    return JSONResponse({"detail": message}, status_code=code)
