"""POST /fork: copies of a running plane that share all they start with."""

from __future__ import annotations

from random import Random

from msgspec import Struct

from kvestigate import errors
from kvestigate.cluster.plane.model import plane_paths
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import PlaneExists
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.environment.points import past, root_state
from kvestigate.http.message import Response
from kvestigate.kube.names import generate_name, label_problems

MOST = 10_000
"""Forks of one request."""
_LONGEST = 63 - len("-0000")


class Wanted(Struct, forbid_unknown_fields=True, rename="camel"):
    name: str = ""
    """Of the fork; with a count, what `-0000` and so on are appended to. Made up if none."""
    count: int | None = None
    checkpoint: str = ""
    """Where to fork from, instead of the present."""
    resource_version: str = ""


async def fork(errand: Errand) -> Response:
    wanted = errand.body(Wanted)
    names = _names(wanted, errand.plane.name, errand.random)
    # Who takes a name decides what others find there.
    errand.require_elsewhere(await root_state(errand), RequestInfo("POST", "/clusters", "post"))
    start = past(errand.plane, wanted.checkpoint, wanted.resource_version)
    try:
        made = await errand.planes.store.fork(errand.plane.name, names, start.revision)
    except PlaneExists as error:
        raise errors.AlreadyExists(
            f'clusters "{error.plane}" already exists',
            details={"name": error.plane, "kind": "clusters"},
        ) from None
    for plane in made:
        errand.planes.workforce.adopt(plane)
    items = [{"id": name, "path": plane_paths.root_path(name)} for name in names]
    told = {"cluster": errand.plane.name, "resourceVersion": str(start.revision), "items": items}
    return answer.json_value(told, 201)


def _names(wanted: Wanted, source: str, random: Random) -> list[str]:
    count = wanted.count
    if count is not None and not 1 <= count <= MOST:
        raise errors.BadRequest(f"count: {count} is not between 1 and {MOST}")
    base = wanted.name or generate_name(f"{source[: _LONGEST - 6]}-", random)
    names = [base] if count is None else [f"{base}-{index:04}" for index in range(count)]
    if problems := label_problems(max(names, key=len)):
        raise errors.BadRequest(f'name: "{base}" cannot be the id of a plane: {problems[0]}')
    return names
