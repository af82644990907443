"""Columns of Endpoints. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response.tables.columns import (
    NAME,
    NONE,
    Cells,
    Columns,
    age,
    strings,
)

_SHOWN = 3


def _cells(obj: Object, now: float) -> Cells:
    return [obj["metadata"]["name"], _listed(list(_addresses(obj))), age(obj, now)]


def _listed(addresses: list[str]) -> str:
    shown = ",".join(addresses[:_SHOWN])
    more = len(addresses) - _SHOWN
    return f"{shown} + {more} more..." if more > 0 else shown


def _addresses(obj: Object) -> Iterator[str]:
    subsets = obj.get("subsets") or []
    if not subsets:
        yield NONE
    for subset in subsets:
        addresses = [each["ip"] for each in subset.get("addresses") or ()]
        ports = [each["port"] for each in subset.get("ports") or ()]
        if not ports:
            yield from addresses
        for port in ports:
            for ip in addresses:
                yield f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


ENDPOINTS = Columns((NAME, *strings("Endpoints", "Age")), _cells)
