"""Columns of Events, of the core group and of their own. Pure."""

from __future__ import annotations

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    Cells,
    Column,
    Columns,
    since,
    strings,
    wide,
)


def _cells(obj: Object, now: float) -> Cells:
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    if series := obj.get("series"):
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    involved, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    kind, name = involved.get("kind", "").lower(), involved.get("name", "")
    origin = [
        source.get("component") or obj.get("reportingComponent", ""),
        source.get("host") or obj.get("reportingInstance", ""),
    ]
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        involved.get("fieldPath", ""),
        ", ".join(part for part in origin if part),
        obj.get("message", "").strip(),
        first,
        count,
        obj["metadata"]["name"],
    ]


EVENTS = Columns(
    (
        *strings("Last Seen", "Type", "Reason", "Object"),
        *wide("Subobject", "Source"),
        *strings("Message"),
        *wide("First Seen", "Count"),
        Column("Name", format="name", priority=1),
    ),
    _cells,
)
