"""A Table of objects of one kind. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvestigate.plane import objects
from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.store.model import Item


def table(
    kind: Kind, items: Sequence[Item], api_version: str, now: float, include: str = ""
) -> dict[str, Any]:
    """`include`: None, Metadata (the default) or Object, what each row carries besides cells."""
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": {},
        "columnDefinitions": [
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        ],
        "rows": [{"cells": [item.name], "object": _row_object(item, include)} for item in items],
    }


def _row_object(item: Item, include: str) -> dict[str, Any]:
    obj = objects.read(item)
    if include == "Object":
        return obj
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
