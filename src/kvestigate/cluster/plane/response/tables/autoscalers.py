"""Columns of HorizontalPodAutoscalers. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    NAME,
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    Columns,
    age,
    strings,
)

_SHOWN = 2
_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _cells(obj: Object, now: float) -> Cells:
    spec, status = obj["spec"], obj["status"]
    target = spec["scaleTargetRef"]
    return [
        obj["metadata"]["name"],
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or [], status.get("currentMetrics") or []),
        str(spec.get("minReplicas", UNSET)),
        spec["maxReplicas"],
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(specs: list[Object], statuses: list[Object]) -> str:
    """`cpu: 12%/80%`, the first two of them."""
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
    (NAME, *strings("Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age")), _cells
)
