"""Which path of a plane leads to which answer about it as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from kvestigate import errors
from kvestigate.cluster.plane.tenancy.environment import checkpoints
from kvestigate.cluster.plane.tenancy.environment.differences import difference
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.environment.forks import fork
from kvestigate.cluster.plane.tenancy.environment.snapshots import snapshot
from kvestigate.cluster.plane.tenancy.environment.steps import step
from kvestigate.cluster.plane.tenancy.environment.trajectory import events
from kvestigate.http.message import Response

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
    answering = ROUTES[_route(errand.info.path)].get(errand.info.method)
    if answering is None:
        raise errors.MethodNotAllowed(
            "the server does not allow this method on the requested resource", details={}
        )
    return await answering(errand)


def _route(path: str) -> str:
    path = path.rstrip("/")
    inside = path.startswith(f"{checkpoints.PATH}/") and path.count("/") == 2
    return "/checkpoints/{name}" if inside else path
