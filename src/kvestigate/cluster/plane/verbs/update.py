"""update: replace an object, or its status, with the one in the body."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.request import body, versions
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import writing
from kvestigate.errors import BadRequest, Conflict
from kvestigate.http.message import Response
from kvestigate.kube import causes


async def update(call: Call) -> Response:
    call.check_write()
    submitted = await body.decode(call)
    await call.breathe()
    meta = submitted["metadata"]
    check_name(meta.get("name") or "", call.info.name)
    if (
        call.kind.creates_on_update
        and not call.info.subresource
        and call.plane.tip.get(call.kind.key, call.namespace, call.info.name) is None
    ):
        return answer.one(call, await _create(call, submitted), 201)
    version = meta.get("resourceVersion") or ""

    def replace(_: Object, item: Item) -> Object:
        check_version(call, version, item)
        if meta.get("uid") and meta["uid"] != item.uid:
            raise precondition_failed(call, "UID", meta["uid"], item.uid)
        return {**submitted, "metadata": dict(meta)}

    pinned = versions.names_one(version)
    return answer.one(call, await writing.change(call, replace, pinned=pinned))


def check_name(submitted: str, name: str) -> None:
    """BadRequest unless the name in the object is the name in the path."""
    if not submitted:
        raise BadRequest(
            f"the name of the object ({name} based on URL) was undeterminable: name must be "
            "provided"
        )
    if submitted != name:
        raise BadRequest(
            f"the name of the object ({submitted}) does not match the name on the URL ({name})"
        )


async def _create(call: Call, obj: Object) -> Item:
    if uid := obj["metadata"].get("uid"):
        raise precondition_failed(call, "UID", uid, "")
    obj["metadata"].pop("resourceVersion", None)
    call.require("create")
    new = await writing.prepare_new(call, obj)
    return await writing.commit_new(call, new)


def check_version(call: Call, version: str, item: Item) -> None:
    """Conflict if an update names another resourceVersion than the present one."""
    if versions.names_one(version):
        if versions.parse(version) != item.revision:
            raise call.modified()
    elif not call.kind.updates_unconditionally:
        resource = call.kind.resource
        cause = causes.invalid("metadata.resourceVersion", 0, "must be specified for an update")
        raise causes.reject(resource.plural, resource.group, call.info.name, [cause])


def precondition_failed(call: Call, field: str, expected: str, actual: str) -> Conflict:
    """The error of a precondition that is checked where kube-apiserver writes to etcd."""
    key = "/".join(filter(None, ("/registry", call.kind.key[1], call.namespace, call.info.name)))
    return call.conflict(
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {field} in precondition: {expected}, {field} in "
        f"object meta: {actual}"
    )
