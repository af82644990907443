"""POST /step: let the time of a plane with a virtual clock pass."""

from __future__ import annotations

from msgspec import Struct

from kvestigate import errors
from kvestigate.cluster.plane.model.metadata import micro_timestamp
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.http.message import Response


class Stride(Struct, forbid_unknown_fields=True, rename="camel"):
    seconds: float | None = None
    until_idle: bool = False
    """Until nothing is left to do, however long that takes in the plane's own time."""


async def step(errand: Errand) -> Response:
    stride = errand.body(Stride)
    if (stride.seconds is None) == (not stride.until_idle):
        raise errors.BadRequest("seconds and untilIdle: give one of them")
    done = await errand.planes.workforce.step(errand.plane, seconds=stride.seconds)
    return answer.json_value(
        {
            "cluster": errand.plane.name,
            "time": micro_timestamp(done.now),
            "resourceVersion": str(done.revision),
            "changes": done.changes,
            "idle": done.idle,
        }
    )
