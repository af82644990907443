"""Columns of Namespaces. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import NAME, Cells, Columns, age, strings


def _cells(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), age(obj, now)]


NAMESPACES = Columns((NAME, *strings("Status", "Age")), _cells)
