"""Columns of ResourceQuotas. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import NAME, Cells, Columns, age, strings


def _cells(obj: Object, now: float) -> Cells:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    usage = {name: f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard)}
    limits = [text for name, text in usage.items() if name.startswith("limits.")]
    requests = [text for name, text in usage.items() if not name.startswith("limits.")]
    return [obj["metadata"]["name"], ", ".join(requests), ", ".join(limits), age(obj, now)]


RESOURCE_QUOTAS = Columns((NAME, *strings("Request", "Limit", "Age")), _cells)
