"""Columns of Scale, which every workload with replicas can be seen as. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import AGE, Cells, Column, Columns, age


def _scale(obj: Object, now: float) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    counts = [spec.get("replicas", 0), status.get("replicas", 0)]
    return [obj["metadata"]["name"], *counts, age(obj, now)]


SCALES = Columns(
    (Column("Name"), Column("Desired", "integer"), Column("Available", "integer"), AGE), _scale
)
