"""/checkpoints and POST /restore: states that are kept under a name, and the way back to one."""

from __future__ import annotations

from msgspec import Struct

from kvestigate import errors
from kvestigate.cluster.plane.kinds.custom.kind import DEFINITIONS
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import ChangeType
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.tenancy import timing
from kvestigate.cluster.plane.tenancy.environment import points
from kvestigate.cluster.plane.tenancy.environment.copying import authorize_restore
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.http.message import Response
from kvestigate.kube.names import subdomain_problems

PATH = "/checkpoints"
MOST = 1000
"""Checkpoints of one plane. Each keeps objects in memory that nothing else refers to."""


class New(Struct, forbid_unknown_fields=True):
    name: str = ""
    """Made from the revision if none is given."""
    replace: bool = False
    """Move a checkpoint of that name instead of refusing."""


class Back(Struct, forbid_unknown_fields=True, rename="camel"):
    checkpoint: str = ""
    resource_version: str = ""
    seed: int | None = None
    """Seed of random choices from now on; None: the seed of the restored state."""


async def list_checkpoints(errand: Errand) -> Response:
    kept = sorted(errand.plane.checkpoints.items())
    items = [_described(name, state) for name, state in kept]
    return answer.json_value({"cluster": errand.plane.name, "items": items})


async def create_checkpoint(errand: Errand) -> Response:
    plane, new = errand.plane, errand.body(New)
    name = new.name or f"revision-{plane.state.revision}"
    if problems := subdomain_problems(name):
        raise errors.BadRequest(f'name: "{name}" cannot name a checkpoint: {problems[0]}')
    kept = plane.checkpoints
    if name in kept and not new.replace:
        raise errors.AlreadyExists(
            f'checkpoints "{name}" already exists',
            details={"name": name, "kind": "checkpoints"},
        )
    if name not in kept and len(kept) >= MOST:
        raise errors.Forbidden(
            f'checkpoints "{name}" is forbidden: the plane has {MOST} of them, as many as it can; '
            "delete some"
        )
    return answer.json_value(_described(name, await plane.checkpoint(name)), 201)


async def delete_checkpoint(errand: Errand) -> Response:
    name = errand.info.path.rstrip("/").removeprefix(f"{PATH}/")
    points.checkpoint(errand.plane, name)  # NotFound
    await errand.plane.drop_checkpoint(name)
    return answer.success({"name": name, "kind": "checkpoints"})


async def restore(errand: Errand) -> Response:
    plane, back = errand.plane, errand.body(Back)
    if not back.checkpoint and not back.resource_version:
        raise errors.BadRequest("checkpoint or resourceVersion: one of them has to be given")
    state = points.past(plane, back.checkpoint, back.resource_version)
    if back.seed is not None and timing.timing_of(state) is None:
        raise errors.BadRequest(f'seed: plane "{plane.name}" runs on the wall clock')
    authorize_restore(errand.authorizer, plane.state, state, errand.user)
    errand.planes.workforce.dismiss(plane.name)
    changes = await plane.restore(state, errand.user.name, errand.breathe, errand.clock.now())
    for change in changes:
        if change.resource == DEFINITIONS and change.type is ChangeType.DELETED:
            plural, _, group = change.item.name.partition(".")
            plane.end_watches((group, plural))
    if (clock := timing.resumed(state, plane.tip, back.seed)) is not None:
        await plane.write(clock, errand.user.name, errand.planes.times.clock(plane).now())
    errand.planes.workforce.adopt(plane)
    outcome = {"resourceVersion": str(plane.state.revision), "changes": len(changes)}
    return answer.json_value({"cluster": plane.name, **outcome})


def _described(name: str, state: PlaneState) -> dict[str, str]:
    return {"name": name, "resourceVersion": str(state.revision)}
