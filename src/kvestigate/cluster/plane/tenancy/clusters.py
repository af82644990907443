"""/clusters: which planes a server has. Asked at the root, as a user of the root plane.

    GET    /clusters        the planes
    POST   /clusters        {"id": "alpha"}: make one; 409 if it is there; with "clock": "virtual"
                            and maybe a "seed" it has a time of its own, moved by steps only
    GET    /clusters/ID     one of them
    DELETE /clusters/ID     remove it with everything in it

These are non-resource URLs of the root plane: its RBAC decides who may.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from kvestigate import errors
from kvestigate.cluster.plane.model.request_info import ROOT, RequestInfo, root_path
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import NoPlane, PlaneExists
from kvestigate.cluster.plane.store.plane import Breathe
from kvestigate.cluster.plane.tenancy.planes import Planes, missing
from kvestigate.cluster.plane.tenancy.timing import Timing
from kvestigate.http.message import Request, Response
from kvestigate.kube.names import label_problems

PATH = "/clusters"
API_VERSION = "kvestigate.dev/v1"
_FREED = 64
"""Changes of a deleted plane that are freed in one step."""


class _New(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    clock: Literal["wall", "virtual"] = "wall"
    seed: int = 0
    """Of all that looks random in a plane with a virtual clock."""


def owns(path: str) -> bool:
    return path == PATH or path.startswith(f"{PATH}/")


async def respond(
    planes: Planes, info: RequestInfo, incoming: Request, breathe: Breathe
) -> Response:
    name = info.path.removeprefix(PATH).strip("/")
    method = info.method
    if not name and method in ("GET", "HEAD"):
        items = [_described(each) for each in planes.store.planes()]
        listed = {"kind": "ClusterList", "apiVersion": API_VERSION, "items": items}
        return answer.json_value(listed)
    if not name and method == "POST":
        return await _create(planes, incoming.body)
    if name and method in ("GET", "HEAD"):
        if name not in planes.store:
            raise missing(name)
        return answer.json_value(_cluster(name))
    if name and method == "DELETE":
        return await _delete(planes, name, breathe)
    raise errors.MethodNotAllowed("the server does not allow this method on the requested resource")


async def _create(planes: Planes, body: bytes) -> Response:
    try:
        new = msgspec.json.decode(body, type=_New)
    except msgspec.DecodeError as error:
        raise errors.BadRequest(f'the body is not like {{"id": "alpha"}}: {error}') from None
    name = new.id
    if problems := label_problems(name):
        raise errors.BadRequest(f'id: "{name}" cannot be the id of a plane: {problems[0]}')
    if new.seed and new.clock != "virtual":
        raise errors.BadRequest("seed: only a plane with a virtual clock can have one")
    try:
        await planes.create(name, Timing(new.seed) if new.clock == "virtual" else None)
    except PlaneExists:
        raise errors.AlreadyExists(
            f'clusters "{name}" already exists', details={"name": name, "kind": "clusters"}
        ) from None
    return answer.json_value(_cluster(name), 201)


async def _delete(planes: Planes, name: str, breathe: Breathe) -> Response:
    if name == ROOT:
        raise errors.Forbidden(f'clusters "{name}" is forbidden: the root plane cannot be deleted')
    doomed = planes.store.loaded(name)
    past = [] if doomed is None else doomed.events_since(doomed.compacted)
    del doomed
    try:
        await planes.delete(name)
    except NoPlane:
        raise missing(name) from None
    while past:  # ten thousand changes take a while to be freed
        del past[-_FREED:]
        await breathe()
    return answer.success({"name": name, "kind": "clusters"})


def _cluster(name: str) -> dict[str, Any]:
    return {"kind": "Cluster", "apiVersion": API_VERSION, **_described(name)}


def _described(name: str) -> dict[str, str]:
    return {"id": name, "path": root_path(name)}
