"""Columns of what decides where and whether pods run: budgets, priorities, leases, devices.
Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    Cells,
    Column,
    Columns,
    age,
    strings,
)

_NOT_GIVEN = "N/A"


def _budget(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        str(spec.get("minAvailable", _NOT_GIVEN)),
        str(spec.get("maxUnavailable", _NOT_GIVEN)),
        obj["status"].get("disruptionsAllowed", 0),
        age(obj, now),
    ]


def _priority_class(obj: Object, now: float) -> Cells:
    return [
        obj["metadata"]["name"],
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _lease(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], obj["spec"].get("holderIdentity", ""), age(obj, now)]


def _runtime_class(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]


def _named(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], age(obj, now)]


def _claim(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], _state(obj), age(obj, now)]


def _state(obj: Object) -> str:
    status, doomed = obj["status"], "deletionTimestamp" in obj["metadata"]
    states = ["deleted"] if doomed else []
    if "allocation" in status:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not doomed:
        states.append("pending")
    return ",".join(states)


def _slice(obj: Object, now: float) -> Cells:
    spec = obj["spec"]
    return [
        obj["metadata"]["name"],
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        spec["pool"].get("name", ""),
        age(obj, now),
    ]


BUDGETS = Columns(
    (
        NAME,
        *strings("Min Available", "Max Unavailable"),
        Column("Allowed Disruptions", "integer"),
        AGE,
    ),
    _budget,
)
PRIORITY_CLASSES = Columns(
    (
        NAME,
        Column("Value", "integer"),
        Column("Global-Default", "boolean"),
        *strings("Age", "PreemptionPolicy"),
    ),
    _priority_class,
)
LEASES = Columns((NAME, *strings("Holder", "Age")), _lease)
RUNTIME_CLASSES = Columns((NAME, *strings("Handler", "Age")), _runtime_class)
DEVICE_CLASSES = CLAIM_TEMPLATES = Columns((NAME, AGE), _named)
RESOURCE_CLAIMS = Columns((NAME, *strings("State", "Age")), _claim)
RESOURCE_SLICES = Columns((NAME, *strings("Node", "Driver", "Pool", "Age")), _slice)
