"""POST /fork: copies of a running plane that share all they start with."""

from __future__ import annotations

from random import Random

from msgspec import Struct

from kvestigate import errors
from kvestigate.cluster.plane.model.request_info import root_path
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.errors import PlaneExists
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.tenancy.environment.copying import authorize_copy
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.environment.points import past
from kvestigate.cluster.plane.tenancy.planes import CREATION
from kvestigate.http.message import Response
from kvestigate.kube.names import generate_name, label_problems

MOST = 10_000
"""Forks of one request."""
_LONGEST = 63 - len("-0000")
_ATTEMPTS = 8
"""Names that are generated before giving up: as many as kube-apiserver does for generateName."""


class Wanted(Struct, forbid_unknown_fields=True, rename="camel"):
    name: str = ""
    """Id of the fork, to which a count appends `-0000` and so on. Generated if empty."""
    count: int | None = None
    checkpoint: str = ""
    """The checkpoint to fork from, instead of the current state."""
    resource_version: str = ""


async def fork(errand: Errand) -> Response:
    wanted = errand.body(Wanted)
    # Whoever creates a plane decides what others find under its name.
    errand.require_elsewhere(await errand.planes.root_state(), CREATION)
    start = past(errand.plane, wanted.checkpoint, wanted.resource_version)
    authorize_copy(errand.authorizer, errand.plane.state, start, errand.user)
    made = await _made(errand, wanted, start.revision)
    for plane in made:
        errand.planes.workforce.adopt(plane)
    items = [{"id": plane.name, "path": root_path(plane.name)} for plane in made]
    document = {
        "cluster": errand.plane.name,
        "resourceVersion": str(start.revision),
        "items": items,
    }
    return answer.json_value(document, 201)


async def _made(errand: Errand, wanted: Wanted, revision: int) -> list[Plane]:
    attempts = 1 if wanted.name else _ATTEMPTS
    while True:
        names = _names(wanted, errand.plane.name, errand.random)
        attempts -= 1
        try:
            return await errand.planes.store.fork(errand.plane.name, names, revision)
        except PlaneExists as error:
            if not attempts:
                raise errors.AlreadyExists(
                    f'clusters "{error.plane}" already exists',
                    details={"name": error.plane, "kind": "clusters"},
                ) from None


def _names(wanted: Wanted, source: str, random: Random) -> list[str]:
    count = wanted.count
    if count is not None and not 1 <= count <= MOST:
        raise errors.BadRequest(f"count: {count} is not between 1 and {MOST}")
    base = wanted.name or generate_name(f"{source[: _LONGEST - 6]}-", random)
    names = [base] if count is None else [f"{base}-{index:04}" for index in range(count)]
    if problems := label_problems(max(names, key=len)):
        raise errors.BadRequest(f'name: "{base}" cannot be the id of a plane: {problems[0]}')
    return names
