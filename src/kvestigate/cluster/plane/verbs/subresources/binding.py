"""binding: assign a pod to a node, once."""

from __future__ import annotations

from msgspec.structs import replace

from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model import metadata, objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.request import body
from kvestigate.cluster.plane.request.call import Call
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Mutation
from kvestigate.cluster.plane.verbs import writing
from kvestigate.cluster.plane.verbs.update import precondition_failed
from kvestigate.errors import ApiError, BadRequest, Conflict
from kvestigate.http.message import Response
from kvestigate.kube import causes
from kvestigate.kube.resources import Resource

BINDING = Kind(Resource("", "v1", "bindings", "Binding"))


async def create_binding(call: Call) -> Response:
    """POST pods/NAME/binding"""
    binding = await body.decode(replace(call, served=BINDING))
    if binding["metadata"].get("name") != call.info.name:
        raise BadRequest("name in URL does not match name in Binding object")
    return await _bind(call, binding)


async def create_legacy_binding(call: Call) -> Response:
    """POST bindings, where only the object names the pod."""
    binding = await body.decode(call)
    name = binding["metadata"].get("name")
    if not name:
        raise BadRequest("Name parameter required.")
    pods = types.of(call.plane.state).get("", "v1", "pods")
    assert pods is not None, "pods are built in"
    return await _bind(replace(call, served=pods, info=replace(call.info, name=name)), binding)


async def _bind(call: Call, binding: Object) -> Response:
    writing.check_namespace(call, binding)
    write = writing.subresource_write(call, BINDING, binding, dry_run=call.dry_run)
    await writing.pass_admission(call, write, lambda: _check(binding))
    if call.dry_run:
        _assigned(call, binding)
    else:
        await writing.commit_decided(call, lambda: [_assigned(call, binding)])
    return answer.made(call, CREATED)


CREATED = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _check(binding: Object) -> None:
    target = binding.get("target") or {}
    problems = []
    if target.get("kind") not in (None, "", "Node"):
        problems.append(causes.unsupported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        problems.append(causes.required("target.name"))
    if problems:
        texts = [str(cause) for cause in problems]
        raise ApiError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


def _assigned(call: Call, binding: Object) -> Mutation:
    """The pod with the node of the binding; Conflict if the pod cannot be bound."""
    item = call.find(call.plane.tip)
    pod = objects.read(item)
    meta, binding_meta = pod["metadata"], binding["metadata"]
    for field, expected, actual in (
        ("UID", binding_meta.get("uid"), item.uid),
        ("ResourceVersion", binding_meta.get("resourceVersion"), str(item.revision)),
    ):
        if expected and expected != actual:
            raise precondition_failed(call, field, expected, actual)
    if meta.get("deletionTimestamp"):
        raise _refused(item.name, f"pod {item.name} is being deleted, cannot be assigned to a host")
    spec = pod["spec"]
    if spec.get("nodeName"):
        node = spec["nodeName"]
        raise _refused(item.name, f'pod {item.name} is already assigned to node "{node}"')
    if spec.get("schedulingGates"):
        raise _refused(item.name, f"pod {item.name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = binding["target"]["name"]
    for field in ("annotations", "labels"):
        if binding_meta.get(field):
            meta[field] = {**(meta.get(field) or {}), **binding_meta[field]}
    set_condition(pod, "PodScheduled", "True", call.clock.now())
    return objects.put(pod, call.kind, item.revision)


def set_condition(obj: Object, type_: str, status: str, now: float, **rest: str) -> None:
    """Add or replace a condition; its transition time changes only with its status."""
    conditions: list[Object] = obj.setdefault("status", {}).setdefault("conditions", [])
    condition = {
        "type": type_,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": metadata.timestamp(now),
        **rest,
    }
    for position, present in enumerate(conditions):
        if present["type"] == type_:
            if present["status"] == status:
                condition["lastTransitionTime"] = present.get("lastTransitionTime")
            conditions[position] = condition
            return
    conditions.append(condition)


def _refused(name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        details={"name": name, "kind": "pods/binding"},
    )
