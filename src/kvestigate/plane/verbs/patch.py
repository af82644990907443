"""patch: JSON patch, merge patch, strategic merge patch and server-side apply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from kvestigate.errors import BadRequest, UnsupportedMediaType
from kvestigate.kube import patch_schema
from kvestigate.kube.patches import json as json_patch
from kvestigate.kube.patches import merge as merge_patch
from kvestigate.kube.patches import strategic
from kvestigate.plane import body, forms, writing
from kvestigate.plane.call import Call
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.store.model import Item
from kvestigate.plane.verbs.update import check_version
from kvestigate.wire.message import Response

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Change:
    """A patch that was read and can be applied, again if another writer was faster."""

    apply: Callable[[Object], Any]
    names_version: bool
    """The patch itself sets a resourceVersion, and so insists on one."""


async def patch(call: Call) -> Response:
    change = read(call)

    def alter(current: Object, item: Item) -> Object:
        altered = patched(call, change, current)
        check_version(call, altered["metadata"].get("resourceVersion") or "", item)
        return altered

    item = await writing.change(call, alter, pinned=change.names_version)
    return forms.one(call, item)


def read(call: Call) -> Change:
    """The patch in the body, for objects of the call's kind."""
    media = call.request.headers.get("content-type").partition(";")[0].strip()
    change = _decode(call, media)
    return Change(_applier(call, media, change), _names_version(change))


def patched(call: Call, change: Change, current: Object) -> Object:
    """`current` after the change, which speaks the client's version of the kind."""
    altered = change.apply(call.served.from_stored(current))
    if not isinstance(altered, dict) or not isinstance(altered.get("metadata"), dict):
        raise BadRequest("the patch leaves no object behind")
    body.check_identity(altered, call.served)
    return call.served.to_stored(body.normal_form(altered, call))


def _decode(call: Call, media: str) -> Any:
    if media not in (JSON, MERGE, STRATEGIC):
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: "
            f"{JSON}, {MERGE}, {STRATEGIC}, {APPLY}"
        )
    try:
        return msgspec.json.decode(call.request.body)
    except msgspec.DecodeError as error:
        raise BadRequest(f"error decoding patch: {error}") from None


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
            f"{JSON}, {MERGE}, {APPLY}"
        )
    return lambda current: strategic.apply(current, change, schema)


def _names_version(change: Any) -> bool:
    if isinstance(change, list):
        return any(
            isinstance(step, dict) and step.get("path") == "/metadata/resourceVersion"
            for step in change
        )
    metadata = change.get("metadata") if isinstance(change, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("resourceVersion"))
