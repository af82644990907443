"""update: replace an object, or its status, with the one in the body."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.request import body, options, versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import forms
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import BadRequest, Conflict, Invalid
from kvestigate.http.message import Response
from kvestigate.kube import causes


async def update(call: Call) -> Response:
    options.check_write(call.info)
    sent = body.decode(call)
    await call.breathe()
    meta = sent["metadata"]
    check_name(meta.get("name") or "", call.info.name)
    if call.kind.creates_on_update and _is_absent(call):
        return forms.one(call, await _create(call, sent), 201)
    version = meta.get("resourceVersion") or ""

    def replace(_: Object, item: Item) -> Object:
        check_version(call, version, item)
        if meta.get("uid") and meta["uid"] != item.uid:
            raise uid_conflict(call, meta["uid"], item.uid)
        return {**sent, "metadata": dict(meta)}

    return forms.one(call, await writing.change(call, replace, pinned=bool(version)))


def check_name(told: str, name: str) -> None:
    """An object must be called as its path says."""
    if not told:
        raise BadRequest(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if told != name:
        raise BadRequest(
            f"the name of the object ({told}) does not match the name on the URL ({name})"
        )


def _is_absent(call: Call) -> bool:
    found = call.plane.tip.get(call.kind.key, call.namespace, call.info.name)
    return found is None and not call.info.subresource


async def _create(call: Call, obj: Object) -> Item:
    if uid := obj["metadata"].get("uid"):
        raise uid_conflict(call, uid, "")
    obj["metadata"].pop("resourceVersion", None)
    call.require("create")
    new = await writing.prepare_new(call, obj)
    return await writing.commit_new(call, new)


def check_version(call: Call, version: str, item: Item) -> None:
    """An update that names a version must name the present one."""
    if version and version != str(item.revision):
        versions.parse(version)
        raise call.modified()
    if not version and not call.kind.updates_unconditionally:
        raise _version_required(call)


def _version_required(call: Call) -> Invalid:
    resource = call.kind.resource
    cause = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return causes.reject(resource.plural, resource.group, call.info.name, [cause])


def uid_conflict(call: Call, told: str, actual: str) -> Conflict:
    return unmet(call, "UID", told, actual)


def unmet(call: Call, field: str, told: str, actual: str) -> Conflict:
    """A precondition that failed where the object is written."""
    key = "/".join(filter(None, ("/registry", call.kind.key[1], call.namespace, call.info.name)))
    return call.conflict(
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {field} in precondition: {told}, {field} in "
        f"object meta: {actual}"
    )
