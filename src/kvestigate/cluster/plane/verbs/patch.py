"""patch: JSON patch, merge patch, strategic merge patch and server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.request import body, versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import apply, writing
from kvestigate.cluster.plane.verbs.update import check_name, check_version
from kvestigate.errors import BadRequest, UnsupportedMediaType
from kvestigate.http.message import Response
from kvestigate.kube import causes, patch_schema
from kvestigate.kube.duplicates import ONCE, Repeated
from kvestigate.kube.patches import json as json_patch
from kvestigate.kube.patches import merge as merge_patch
from kvestigate.kube.patches import strategic

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Change(msgspec.Struct, frozen=True):
    """A decoded patch; it may be applied several times, if other writers are faster."""

    apply: Callable[[Object], Any]
    names_version: bool
    """The patch sets metadata.resourceVersion, and so applies to that version only."""
    repeated: Repeated = ONCE
    """The keys that the patch has twice."""


async def patch(call: Call) -> Response:
    applies = apply.is_apply(call)
    call.check_write(applies=applies)
    if applies:
        return await apply.apply(call)
    change = await read(call)
    await call.breathe()

    def alter(current: Object, item: Item) -> Object:
        altered = patched(call, change, current)
        check_version(call, altered["metadata"].get("resourceVersion") or "", item)
        return altered

    item = await writing.change(call, alter, pinned=change.names_version)
    return answer.one(call, item)


async def read(call: Call) -> Change:
    """The patch in the body, for objects of the call's kind."""
    media = call.request.headers.get("content-type").partition(";")[0].strip()
    change, repeated = await _decode(call, media)
    return Change(_applier(call, media, change), _names_version(change), repeated)


def patched(call: Call, change: Change, current: Object) -> Object:
    """`current` after the patch, which is in the client's version of the kind."""
    converted = call.served.from_stored(current)
    altered = change.apply(converted)
    if not isinstance(altered, dict):
        raise BadRequest("the patch leaves no object behind")
    if altered.get("metadata") is None:
        altered["metadata"] = {}
    try:
        body.identify(altered, call.served)
        fitted = body.refit(altered, converted, call, change.repeated)
    except body.Misfit as misfit:
        value = msgspec.json.encode(altered).decode()
        cause = causes.invalid("patch", value, str(misfit))
        raise causes.reject("", "", "", [cause]) from None
    check_name(fitted["metadata"].get("name") or "", call.info.name)
    return call.served.to_stored(fitted)


async def _decode(call: Call, media: str) -> tuple[Any, Repeated]:
    if media not in (JSON, MERGE, STRATEGIC):
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    data = call.request.body
    try:
        large = body.is_large(data, media)
        change, repeated = await _aside(call, data) if large else body.decode_json(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = body.json_problem(error)
        raise BadRequest(why if media == STRATEGIC else f"error decoding patch: {why}") from None
    return change, repeated.prefixed("json patch ") if media == JSON else repeated


async def _aside(call: Call, data: bytes) -> tuple[Any, Repeated]:
    return await call.aside(lambda: body.decode_json(data))


def _applier(call: Call, media: str, change: Any) -> Callable[[Object], Any]:
    if media == JSON:
        return lambda current: json_patch.apply(current, change)
    if media == MERGE:
        merge_patch.require_object(change)
        return lambda current: merge_patch.apply(current, change)
    resource = call.served.resource
    schema = patch_schema.for_kind(resource.group, resource.version, resource.kind)
    if schema is strategic.UNTYPED:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{JSON}, {MERGE}, {apply.MEDIA}"
        )
    return lambda current: strategic.apply(current, change, schema)


def _names_version(change: Any) -> bool:
    if isinstance(change, list):
        return any(
            isinstance(step, dict) and step.get("path") == "/metadata/resourceVersion"
            for step in change
        )
    metadata = change.get("metadata") if isinstance(change, dict) else None
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return isinstance(version, str) and versions.names_one(version)
