"""update: replace an object, or its status, with the one in the body."""

from __future__ import annotations

from kvestigate.errors import BadRequest, Conflict, Invalid
from kvestigate.kube import causes
from kvestigate.plane import body, forms, writing
from kvestigate.plane.call import Call
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.store.model import Item
from kvestigate.wire.message import Response


async def update(call: Call) -> Response:
    sent = body.decode(call)
    meta = sent["metadata"]
    name = meta.setdefault("name", call.asked.name) or call.asked.name
    if name != call.asked.name:
        raise BadRequest(
            f"the name of the object ({name}) does not match the name on the URL "
            f"({call.asked.name})"
        )
    version = meta.get("resourceVersion") or ""

    def replace(_: Object, item: Item) -> Object:
        check_version(call, version, item)
        if meta.get("uid") and meta["uid"] != item.uid:
            raise uid_conflict(call, meta["uid"], item.uid)
        return {**sent, "metadata": dict(meta)}

    return forms.one(call, await writing.change(call, replace, pinned=bool(version)))


def check_version(call: Call, version: str, item: Item) -> None:
    """An update that names a version must name the present one."""
    if version and version != str(item.revision):
        raise call.modified()
    if not version and not call.kind.updates_unconditionally:
        raise _version_required(call)


def _version_required(call: Call) -> Invalid:
    resource = call.kind.resource
    cause = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return causes.reject(resource.kind, resource.group, call.asked.name, [cause])


def uid_conflict(call: Call, told: str, actual: str) -> Conflict:
    return call.conflict(
        f"Precondition failed: UID in precondition: {told}, UID in object meta: {actual}"
    )
