"""Snapshots made of objects as a server would send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kvestigate.observe import listings
from kvestigate.observe.listings import Listing
from kvestigate.observe.snapshot import Cause, Gap, Snapshot
from kvestigate.reports.audit import NEEDS

Object = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def snapshot(
    objects: Mapping[Listing[Any], Sequence[Object]] | None = None,
    *,
    denied: Sequence[Listing[Any]] = (),
    absent: Sequence[Listing[Any]] = (listings.NODE_METRICS, listings.POD_METRICS),
) -> Snapshot:
    """`objects` by their listing; everything else is empty."""
    given = objects or {}
    made = Snapshot(NOW)
    for listing in NEEDS:
        if listing in given:
            made.listed[listing] = tuple(msgspec.convert(it, listing.type) for it in given[listing])
        elif listing in denied:
            made.gaps[listing] = _gap(listing, Cause.DENIED)
        elif listing in absent:
            made.gaps[listing] = _gap(listing, Cause.ABSENT)
        else:
            made.listed[listing] = ()
    return made


def _gap(listing: Listing[Any], cause: Cause) -> Gap:
    return Gap("list", listing.resource.qualified, cause, "as the test says")


def named(name: str, namespace: str = "shop", **rest: Any) -> Object:
    """`named("web", spec={...})`"""
    labels = rest.pop("labels", {})
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, **rest}
