"""Conditions in a pod's status, set the way the server sets them. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model import metadata
from kvestigate.cluster.plane.model.kind import Object


def set_condition(obj: Object, type_: str, status: str, now: float, **rest: str) -> None:
    """Add or replace a condition; its transition time stays while its status does."""
    conditions: list[Object] = obj.setdefault("status", {}).setdefault("conditions", [])
    condition = {
        "type": type_,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": metadata.timestamp(now),
        **rest,
    }
    for position, known in enumerate(conditions):
        if known["type"] == type_:
            if known["status"] == status:
                condition["lastTransitionTime"] = known.get("lastTransitionTime")
            conditions[position] = condition
            return
    conditions.append(condition)


def is_true(obj: Object, type_: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(known["type"] == type_ and known["status"] == "True" for known in conditions)
