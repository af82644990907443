"""Nothing is created in a namespace that is missing or on its way out."""

from __future__ import annotations

import msgspec

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.errors import Forbidden, NotFound

NAMESPACES = ("", "namespaces")
IMMORTAL = ("default", "kube-system", "kube-public")


def need_namespace(write: Write) -> None:
    if write.kind.key == NAMESPACES:
        if write.operation == "DELETE" and write.info.name in IMMORTAL:
            raise Forbidden(
                f'namespaces "{write.info.name}" is forbidden: this namespace may not be deleted',
                details={"name": write.info.name, "kind": "namespaces"},
            )
        return
    if write.operation != "CREATE" or not write.kind.resource.namespaced:
        return
    name = write.info.namespace
    item = write.scene.state.get(NAMESPACES, "", name)
    if item is None:
        raise NotFound(
            f'namespaces "{name}" not found', details={"name": name, "kind": "namespaces"}
        )
    if _is_terminating(item.data):
        raise _terminating(write, name)


def _is_terminating(data: bytes) -> bool:
    if b'"deletionTimestamp"' not in data:  # nearly always, and much cheaper to tell
        return False
    namespace: Object = msgspec.json.decode(data)
    return bool(namespace["metadata"].get("deletionTimestamp"))


def _terminating(write: Write, namespace: str) -> Forbidden:
    resource = write.kind.resource
    name = write.new["metadata"].get("name", "")
    text = f"unable to create new content in namespace {namespace} because it is being terminated"
    details = {"name": name, "kind": resource.plural}
    if resource.group:
        details["group"] = resource.group
    return Forbidden(
        f'{resource.qualified} "{name}" is forbidden: {text}',
        details={
            **details,
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        },
    )
