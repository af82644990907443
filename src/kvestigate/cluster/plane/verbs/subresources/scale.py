"""scale: the replicas of a workload as an autoscaling/v1 Scale, whatever the workload's kind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kvestigate.cluster.plane.admission.interface import SubresourceObject
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.request.versions import at_least, names_one
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.verbs import apply as applying
from kvestigate.cluster.plane.verbs import converting, writing
from kvestigate.cluster.plane.verbs import patch as patching
from kvestigate.cluster.plane.verbs.update import check_name, check_version, precondition_failed
from kvestigate.errors import InternalError
from kvestigate.http.message import Response
from kvestigate.kube import causes
from kvestigate.kube.causes import Cause
from kvestigate.kube.duplicates import Repeated
from kvestigate.kube.resources import Resource
from kvestigate.kube.selectors import from_label_selector

SCALE = Kind(Resource("autoscaling", "v1", "scales", "Scale"))

Path = tuple[str, ...]

SCALE_REPLICAS = ("spec", "replicas")
Verb = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Scaling:
    """The fields of a kind that a Scale consists of."""

    selector: Callable[[Object], str]
    """Returns the label selector of the pods as text; empty if the object has none."""
    replicas: Path = SCALE_REPLICAS
    current: Path = ("status", "replicas")
    required: str = ""
    """If set: without this field an object has no Scale. The path as errors name it."""


def label_selector(obj: Object) -> str:
    """The selector of kinds whose spec.selector is a LabelSelector."""
    return str(from_label_selector((obj.get("spec") or {}).get("selector")))


def label_map(obj: Object) -> str:
    """The selector of kinds whose spec.selector is a map of labels."""
    labels = (obj.get("spec") or {}).get("selector") or {}
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels))


WORKLOAD = Scaling(label_selector)
REPLICATION_CONTROLLER = Scaling(label_map)


def verbs(scaling: Scaling) -> dict[str, Verb]:
    """The verbs of the scale subresource of a kind."""

    async def get(call: Call) -> Response:
        at_least(call.plane, call.info.params.get("resourceVersion", ""))
        item = await converting.find(call, call.plane.state)
        if scaling.required and read(objects.read(item), scaling.replicas) is None:
            why = f'the spec replicas field "{scaling.required}" does not exist'
            raise InternalError(f"Internal error occurred: {why}")
        return _answer(call, item, scaling)

    async def update(call: Call) -> Response:
        scale = await body.decode(replace(call, served=SCALE))
        check_name(scale["metadata"].get("name") or "", call.info.name)
        version = scale["metadata"].get("resourceVersion") or ""
        item = await writing.change(
            call,
            lambda obj, item: _scaled(call, obj, item, scale, scaling),
            pinned=names_one(version),
            shown_as=_as_scale(scaling),
        )
        return _answer(call, item, scaling)

    async def patch(call: Call) -> Response:
        as_scale = replace(call, served=SCALE)
        applies = applying.is_apply(call)
        call.check_write(applies=applies)
        if applies:
            config, repeated = await applying.read(as_scale)
            item = await _apply(call, config, repeated, scaling)
            return _answer(call, item, scaling)
        change = await patching.read(as_scale)

        def alter(obj: Object, item: Item) -> Object:
            scale = patching.patched(as_scale, change, _scale(obj, scaling))
            return _scaled(call, obj, item, scale, scaling)

        item = await writing.change(
            call, alter, pinned=change.names_version, shown_as=_as_scale(scaling)
        )
        return _answer(call, item, scaling)

    return {"get": get, "update": update, "patch": patch}


async def _apply(call: Call, config: Object, repeated: Repeated, scaling: Scaling) -> Item:
    meta, replicas = config["metadata"], read(config, SCALE_REPLICAS)
    check_name(meta.get("name") or "", call.info.name)
    resource = call.served.resource
    workload: Object = {"apiVersion": resource.api_version, "kind": resource.kind}
    if replicas is not None:
        _write(workload, scaling.replicas, replicas)

    def alter(obj: Object, item: Item) -> Object:
        if problems := _problems(config):
            raise causes.reject("Scale", "autoscaling", item.name, problems)
        check_version(call, meta.get("resourceVersion") or str(item.revision), item)
        return applying.applied(call, workload, obj, repeated, speaking=SCALE.resource.api_version)

    pinned = names_one(meta.get("resourceVersion") or "")
    return await writing.change(
        call, alter, pinned=pinned, tracked=True, shown_as=_as_scale(scaling)
    )


def _scaled(call: Call, obj: Object, item: Item, scale: Object, scaling: Scaling) -> Object:
    """The workload with the replicas of a Scale."""
    meta = scale["metadata"]
    if meta.get("uid") and meta["uid"] != item.uid:
        raise precondition_failed(call, "UID", meta["uid"], item.uid)
    # Custom resources have rules of their own about replicas.
    if call.served.type is not None and (problems := _problems(scale)):
        raise causes.reject("Scale", "autoscaling", item.name, problems)
    check_version(call, meta.get("resourceVersion") or str(item.revision), item)
    _write(obj, scaling.replicas, (scale.get("spec") or {}).get("replicas", 0))
    return obj


def _as_scale(scaling: Scaling) -> SubresourceObject:
    def take(obj: Object, scale: Object) -> None:
        _write(obj, scaling.replicas, (scale.get("spec") or {}).get("replicas", 0))

    return SubresourceObject(SCALE, lambda obj: _scale(obj, scaling), take)


def _problems(scale: Object) -> list[Cause]:
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    if replicas >= 0:
        return []
    return [causes.invalid("spec.replicas", replicas, "must be greater than or equal to 0")]


def _scale(obj: Object, scaling: Scaling) -> Object:
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": read(obj, scaling.current) or 0}
    if selector := scaling.selector(obj):
        status["selector"] = selector
    replicas = read(obj, scaling.replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _answer(call: Call, item: Item, scaling: Scaling) -> Response:
    data = answer.encode(_scale(objects.read(item), scaling))
    scale = Item(item.namespace, item.name, item.uid, item.revision, 0, data)
    return answer.one(replace(call, served=SCALE), scale)


def read(obj: Any, path: Path) -> Any:
    """The value at a path; None if there is none."""
    for step in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(step)
    return obj


def _write(obj: Object, path: Path, value: int) -> None:
    *parents, last = path
    for step in parents:
        obj = obj.setdefault(step, {})
    obj[last] = value
