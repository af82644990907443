"""get: one object, sent as it is stored."""

from __future__ import annotations

from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.versions import at_least
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.verbs import converting
from kvestigate.http.message import Response


async def get(call: Call) -> Response:
    if version := call.info.params.get("resourceVersion"):
        at_least(call.plane, version)
    item = await converting.find(call, call.plane.state)
    return answer.one(call, item)
