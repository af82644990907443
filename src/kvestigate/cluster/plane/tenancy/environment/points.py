"""The states that a plane can be compared with, forked from or brought back to, and their names.

1042                a revision that is retained
checkpoint:start    one that was kept under a name
plane:alpha         the present of another plane
"""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate import errors
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.request import versions
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.planes import missing

_CHECKPOINT, _PLANE = "checkpoint:", "plane:"


@dataclass(frozen=True, slots=True)
class Point:
    plane: Plane
    state: PlaneState


async def point(errand: Errand, field: str, text: str) -> Point:
    """The state that `text` names; `field` is the query parameter, for error messages."""
    plane = errand.plane
    if text.startswith(_CHECKPOINT):
        return Point(plane, checkpoint(plane, text.removeprefix(_CHECKPOINT)))
    if text.startswith(_PLANE):
        other = await _other(errand, text.removeprefix(_PLANE))
        return Point(other, other.state)
    if text.isascii() and text.isdecimal():
        return Point(plane, await versions.recalled(plane, int(text), errand.breathe))
    raise errors.BadRequest(
        f'{field}: "{text}" is no point of a plane: write a revision (1042), checkpoint:NAME or '
        "plane:ID"
    )


def past(plane: Plane, named: str, version: str) -> PlaneState:
    """The state that a body names by `checkpoint` or by `resourceVersion`; else the present."""
    if named and version:
        raise errors.BadRequest("checkpoint and resourceVersion: give one of them, not both")
    if named:
        return checkpoint(plane, named)
    if version:
        if not (version.isascii() and version.isdecimal()):
            raise errors.BadRequest(f'resourceVersion: "{version}" is no revision')
        return versions.exactly(plane, int(version))
    return plane.state


def checkpoint(plane: Plane, name: str) -> PlaneState:
    state = plane.checkpoints.get(name)
    if state is None:
        raise errors.NotFound(
            f'checkpoints "{name}" not found', details={"name": name, "kind": "checkpoints"}
        )
    return state


async def _other(errand: Errand, name: str) -> Plane:
    """Another plane, if the user may take a snapshot of it."""
    if name == errand.plane.name:
        return errand.plane
    plane = await errand.planes.find(name)
    if plane is None:
        raise missing(name)
    errand.require_elsewhere(plane.state, RequestInfo("GET", "/snapshot", "get"))
    return plane
