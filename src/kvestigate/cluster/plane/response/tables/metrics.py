"""Columns of what nodes and pods use, as metrics-server shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import NAME, Cells, Column, Columns
from kvestigate.kube import quantities

_RESOURCES = ("cpu", "memory")
_COLUMNS = (
    NAME,
    *(Column(name, format="quantity") for name in _RESOURCES),
    Column("Window", format="duration"),
)


def _node(obj: Object, now: float) -> Cells:
    return _cells(obj, [obj["usage"]])


def _pod(obj: Object, now: float) -> Cells:
    return _cells(obj, [container["usage"] for container in obj["containers"]])


def _cells(obj: Object, usages: Iterable[dict[str, str]]) -> Cells:
    usages = list(usages)
    cpu = sum(quantities.parse(usage["cpu"]).nanos for usage in usages)
    memory = sum(quantities.whole(usage["memory"]) for usage in usages)
    return [obj["metadata"]["name"], f"{cpu}n", f"{memory // 1024}Ki", obj["window"]]


NODE_METRICS = Columns(_COLUMNS, _node)
POD_METRICS = Columns(_COLUMNS, _pod)
