"""A Table of objects of one kind. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvestigate.cluster.plane.kinds.custom.kind import CustomKind
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.response.tables.columns import Columns
from kvestigate.cluster.plane.response.tables.registry import columns_of
from kvestigate.cluster.plane.store.model import Item
from kvestigate.errors import BadRequest
from kvestigate.kube import normal
from kvestigate.kube.causes import invalid


def table(
    kind: Kind,
    items: Sequence[Item],
    api_version: str,
    now: float,
    include: str = "",
    *,
    headers: bool = True,
) -> dict[str, Any]:
    """The Table without its metadata.

    `include` is what each row carries besides cells: None, Metadata (the default) or Object.
    """
    if include not in ("", "None", "Metadata", "Object"):
        cause = invalid("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty")
        raise BadRequest(f"Unable to convert to Table as requested: {cause}")
    columns = columns_of(kind)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {},
        "columnDefinitions": columns.definitions() if headers else None,
        "rows": rows(kind, items, api_version, now, include) or columns.empty_rows,
    }


def rows(
    kind: Kind, items: Sequence[Item], api_version: str, now: float, include: str = ""
) -> list[dict[str, Any]]:
    """The rows of some of a Table's objects."""
    columns = columns_of(kind)
    return [_row(kind, columns, _read(kind, item), now, include, api_version) for item in items]


def blank(kind: Kind, metadata: Object, api_version: str, *, headers: bool) -> dict[str, Any]:
    """The Table of a bookmark: one row without an object, which carries only `metadata`."""
    columns = columns_of(kind)
    carried = {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": metadata,
    }
    nothing = {} if kind.type is None else normal.empty(kind.type)
    blank_object = {"spec": {}, "status": {}, **nothing, "metadata": {**metadata, "name": ""}}
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {"resourceVersion": metadata["resourceVersion"]},
        "columnDefinitions": columns.definitions() if headers else None,
        "rows": [{"cells": columns.cells(blank_object, 0.0), "object": carried}],
    }


def _read(kind: Kind, item: Item) -> Object:
    """What cells are made from: the stored form, or that of a definition's version."""
    obj = objects.read(item)
    return kind.from_stored(obj) if isinstance(kind, CustomKind) else obj


def _row(
    kind: Kind, columns: Columns, obj: Object, now: float, include: str, api_version: str
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": columns.cells(obj, now)}
    if columns.conditions is not None and (conditions := columns.conditions(obj)):
        row["conditions"] = conditions
    row["object"] = _carried(kind, obj, include, api_version)
    return row


def _carried(kind: Kind, obj: Object, include: str, api_version: str) -> Object | None:
    if include == "None":
        return None
    if include == "Object":
        return kind.from_stored(obj)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": obj["metadata"],
    }
