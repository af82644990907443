"""get: one object, sent as it is stored."""

from __future__ import annotations

from kvestigate.plane import forms
from kvestigate.plane.call import Call
from kvestigate.plane.versions import at_least
from kvestigate.wire.message import Response


async def get(call: Call) -> Response:
    if version := call.asked.params.get("resourceVersion"):
        at_least(call.plane, version)
    item = call.find(call.plane.state)
    return forms.one(call, item)
