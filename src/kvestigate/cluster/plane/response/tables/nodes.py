"""Columns of Nodes. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    NAME,
    NONE,
    UNKNOWN,
    Cells,
    Columns,
    age,
    condition,
    strings,
    wide,
)

_ROLE, _OLD_ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"
_READINESS = {"": "Unknown", "True": "Ready"}


def _cells(obj: Object, now: float) -> Cells:
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    if architecture := info.get("architecture"):
        kernel = f"{kernel} ({architecture})"
    return [
        obj["metadata"]["name"],
        _status(obj),
        ",".join(_roles(obj["metadata"].get("labels") or {})) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _status(obj: Object) -> str:
    text = _READINESS.get(condition(obj, "Ready"), "NotReady")
    return f"{text},SchedulingDisabled" if obj["spec"].get("unschedulable") else text


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles.add(labels.get(_OLD_ROLE, ""))
    return sorted(roles - {""})


def _address(status: Object, type_: str) -> str:
    for each in status.get("addresses") or ():
        if each["type"] == type_:
            address: str = each["address"]
            return address
    return NONE


NODES = Columns(
    (
        NAME,
        *strings("Status", "Roles", "Age", "Version"),
        *wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    _cells,
)
