"""Snapshots made of objects as a server would send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from kvestigate.health.audit import NEEDS
from kvestigate.snapshot import listings
from kvestigate.snapshot.gaps import Cause, Gap
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.source import Listing, Source

Object = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def snapshot(
    objects: Mapping[Any, Sequence[Any]] | None = None,
    *,
    denied: Sequence[Source[Any]] = (),
    absent: Sequence[Source[Any]] = (listings.NODE_METRICS, listings.POD_METRICS),
) -> Snapshot:
    """`objects` by their source, as the server sends those of a listing; the rest is empty."""
    given = objects or {}
    made = Snapshot(NOW)
    for source in NEEDS:
        if source in given:
            made.listed[source] = tuple(_as_read(it, source) for it in given[source])
        elif source in denied:
            made.gaps[source] = _gap(source, Cause.DENIED)
        elif source in absent:
            made.gaps[source] = _gap(source, Cause.ABSENT)
        else:
            made.listed[source] = ()
    return made


def _as_read(given: Any, source: Source[Any]) -> Any:
    return msgspec.convert(given, source.type) if isinstance(source, Listing) else given


def _gap(source: Source[Any], cause: Cause) -> Gap:
    return Gap(source.verb, source.name, cause, "as the test says")


def named(name: str, namespace: str = "shop", **rest: Any) -> Object:
    """`named("web", spec={...})`"""
    labels = rest.pop("labels", {})
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, **rest}
