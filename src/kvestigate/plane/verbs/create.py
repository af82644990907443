"""create"""

from __future__ import annotations

from kvestigate.errors import AlreadyExists
from kvestigate.plane import body, forms, options, writing
from kvestigate.plane.call import Call
from kvestigate.plane.store.model import Item
from kvestigate.wire.message import Response

GENERATED_NAME_TRIES = 8


async def create(call: Call) -> Response:
    options.check_write(call.asked)
    return forms.one(call, await _create(call), 201)


async def _create(call: Call) -> Item:
    for left in reversed(range(GENERATED_NAME_TRIES)):
        obj = body.decode(call)
        generated = not obj["metadata"].get("name")
        write = await writing.prepare_new(call, call.plane.tip, obj)
        try:
            return await writing.commit_new(call, write)
        except AlreadyExists:
            # A clash of random names is nobody's fault: draw again.
            if not generated or not left:
                raise
    raise AssertionError("unreachable")
