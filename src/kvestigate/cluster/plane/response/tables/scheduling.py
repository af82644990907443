"""Columns of what decides where, whether and how many pods run. Pure.

Budgets, priorities, leases, devices and autoscalers.
"""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Columns,
    column,
    flag,
    integer,
    reference,
)

BUDGETS = Columns(
    NAME,
    column("Min Available", lambda obj: str(obj["spec"].get("minAvailable", "N/A"))),
    column("Max Unavailable", lambda obj: str(obj["spec"].get("maxUnavailable", "N/A"))),
    integer("Allowed Disruptions", "status.disruptionsAllowed"),
    AGE,
)
PRIORITY_CLASSES = Columns(
    NAME,
    integer("Value", "value"),
    flag("Global-Default", "globalDefault"),
    AGE,
    column("PreemptionPolicy", "preemptionPolicy"),
)
LEASES = Columns(NAME, column("Holder", "spec.holderIdentity"), AGE)
RUNTIME_CLASSES = Columns(NAME, column("Handler", "handler"), AGE)


def _claim_state(obj: Object) -> str:
    status, terminating = obj["status"], "deletionTimestamp" in obj["metadata"]
    states = ["deleted"] if terminating else []
    if "allocation" in status:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not terminating:
        states.append("pending")
    return ",".join(states)


RESOURCE_CLAIMS = Columns(NAME, column("State", _claim_state), AGE)
RESOURCE_SLICES = Columns(
    NAME,
    column("Node", "spec.nodeName"),
    column("Driver", "spec.driver"),
    column("Pool", "spec.pool.name"),
    AGE,
)

# -- HorizontalPodAutoscalers ----------------------------------------------------------------

_SHOWN = 2
_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _metrics(obj: Object) -> str:
    """`cpu: 12%/80%`, the first two of them."""
    specs, statuses = obj["spec"].get("metrics") or [], obj["status"].get("currentMetrics") or []
    if not specs:
        return NONE
    padded = [*statuses, *({} for _ in specs)]
    texts = [_metric(spec, status) for spec, status in zip(specs, padded, strict=False)]
    shown = ", ".join(texts[:_SHOWN])
    return f"{shown} + {len(texts) - _SHOWN} more..." if len(texts) > _SHOWN else shown


def _metric(spec: Object, status: Object) -> str:
    source = _SOURCES.get(spec["type"], "")
    if source not in spec:
        return "<unknown type>"
    target = spec[source]["target"]
    current = (status.get(source) or {}).get("current") or {}
    if source in ("resource", "containerResource"):
        name = spec[source]["name"]
        if "averageValue" in target:
            return f"{name}: {current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        return f"{name}: {_percent(used, UNKNOWN)}/{_percent(wanted, '<auto>')}"
    if source == "pods":
        return f"{current.get('averageValue', UNKNOWN)}/{target.get('averageValue', NONE)}"
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', NONE)}"


def _percent(value: int | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value}%"


AUTOSCALERS = Columns(
    NAME,
    column("Reference", reference("spec.scaleTargetRef", "kind", "name", default="/")),
    column("Targets", _metrics),
    column("MinPods", lambda obj: str(obj["spec"].get("minReplicas", UNSET))),
    column("MaxPods", "spec.maxReplicas", 0),
    column("Replicas", "status.currentReplicas", 0),
    AGE,
)
