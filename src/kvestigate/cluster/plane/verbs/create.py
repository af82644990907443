"""create"""

from __future__ import annotations

from kvestigate.cluster.plane.request import body, options
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import forms
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import AlreadyExists
from kvestigate.http.message import Response

GENERATED_NAME_TRIES = 8


async def create(call: Call) -> Response:
    options.check_write(call.info)
    return forms.one(call, await _create(call), 201)


async def _create(call: Call) -> Item:
    for left in reversed(range(GENERATED_NAME_TRIES)):
        obj = body.decode(call)
        await call.breathe()
        meta = obj["metadata"]
        base, generated = meta.get("generateName"), not meta.get("name")
        preparing = writing.prepare_new(call, obj)
        del obj, meta  # who waits for the disk holds on to bytes only
        new = await preparing
        try:
            return await writing.commit_new(call, new)
        except AlreadyExists:
            # A clash of random names is nobody's fault: draw again.
            if base and not (generated and left):
                raise _not_unique(call, new.put.name) from None
            if not generated:
                raise
    raise AssertionError("unreachable")


def _not_unique(call: Call, name: str) -> AlreadyExists:
    taken = call.already_exists(name)
    why = "the server was not able to generate a unique name for the object"
    return AlreadyExists(
        f"{taken.message}, {why}", details={**taken.details, "retryAfterSeconds": 1}
    )
