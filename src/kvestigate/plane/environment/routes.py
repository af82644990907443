"""Which path of a plane leads to which answer about it as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from kvestigate import errors
from kvestigate.plane.environment import checkpoints
from kvestigate.plane.environment.differences import difference
from kvestigate.plane.environment.errand import Errand
from kvestigate.plane.environment.forks import fork
from kvestigate.plane.environment.snapshots import snapshot
from kvestigate.plane.environment.steps import step
from kvestigate.plane.environment.trajectory import events
from kvestigate.wire.message import Response

Answering = Callable[[Errand], Awaitable[Response]]

ROUTES: Mapping[str, Mapping[str, Answering]] = {
    "/snapshot": {"GET": snapshot},
    "/fork": {"POST": fork},
    "/checkpoints": {"GET": checkpoints.list_checkpoints, "POST": checkpoints.create_checkpoint},
    "/checkpoints/{name}": {"DELETE": checkpoints.delete_checkpoint},
    "/restore": {"POST": checkpoints.restore},
    "/diff": {"GET": difference},
    "/events": {"GET": events},
    "/step": {"POST": step},
}
"""Paths are relative to a plane."""


def owns(path: str) -> bool:
    return _route(path) in ROUTES


async def respond(errand: Errand) -> Response:
    answering = ROUTES[_route(errand.asked.path)].get(errand.asked.method)
    if answering is None:
        raise errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    return await answering(errand)


def _route(path: str) -> str:
    path = path.rstrip("/")
    inside = path.startswith(f"{checkpoints.PATH}/") and path.count("/") == 2
    return "/checkpoints/{name}" if inside else path
