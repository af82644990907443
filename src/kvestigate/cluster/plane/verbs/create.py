"""create"""

from __future__ import annotations

from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import AlreadyExists
from kvestigate.http.message import Response

GENERATED_NAME_TRIES = 8


async def create(call: Call) -> Response:
    call.check_write()
    for tries_left in reversed(range(GENERATED_NAME_TRIES)):
        obj = await body.decode(call)
        await call.breathe()
        meta = obj["metadata"]
        generate_name, generated = meta.get("generateName"), not meta.get("name")
        preparation = writing.prepare_new(call, obj)
        del obj, meta  # free before the wait for the disk: see `writing`
        new = await preparation
        try:
            return answer.one(call, await writing.commit_new(call, new), 201)
        except AlreadyExists as error:
            if generated and tries_left:
                continue  # two random names were the same: draw another one
            if not generate_name:
                raise
            raise AlreadyExists(
                f"{error.message}, the server was not able to generate a unique name for the "
                "object",
                details={**error.details, "retryAfterSeconds": 1},
            ) from None
    raise AssertionError("unreachable")
