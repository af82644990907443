"""A snapshot of objects as a server would list them, sorted to their sources by kind."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from kvestigate.health.audit import NEEDS
from kvestigate.snapshot import listings
from kvestigate.snapshot.administration import UncheckedObject, as_custom_object
from kvestigate.snapshot.gaps import Cause, Gap
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.source import ApiVersion, CustomObjects, Listing, ServerVersion, Source

Object = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
VERSION = "v1.36.4"
_ABSENT = (listings.NODE_METRICS, listings.POD_METRICS)


def cluster_of(objects: Iterable[Object], *, now: datetime = NOW) -> Snapshot:
    """Every kind was read; metrics are not served unless objects of them are given."""
    given = list(objects)
    known = {
        (source.resource.group, source.resource.kind)
        for source in NEEDS
        if isinstance(source, Listing)
    }
    unknown = [one for one in given if _group_and_kind(one) not in known]
    snapshot = Snapshot(now)
    for source in NEEDS:
        read: list[Any] = []
        if isinstance(source, Listing):
            read = [one for one in given if _listed(one, source)]
            if not read and source in _ABSENT:
                snapshot.gaps[source] = Gap(source.verb, source.name, Cause.ABSENT, "not served")
                continue
        elif isinstance(source, ServerVersion):
            snapshot.listed[source] = (ApiVersion(VERSION),)
            continue
        elif isinstance(source, CustomObjects):
            read = unknown
        snapshot.listed[source] = tuple(_as_read(one, source) for one in read)
    return snapshot


def _group_and_kind(given: Object) -> tuple[str, str]:
    """Of an example without apiVersion: the built-in kind of that name."""
    group, slash, _ = given.get("apiVersion", _group_of(given["kind"])).rpartition("/")
    return group if slash else "", given["kind"]


def _group_of(kind: str) -> str:
    listed = (source.resource for source in NEEDS if isinstance(source, Listing))
    return next((one.api_version for one in listed if one.kind == kind), "")


def _listed(given: Object, source: Listing[Any]) -> bool:
    """Whether a list of the source has it: the right kind, and what the field selector asks."""
    resource = source.resource
    if given["kind"] != resource.kind:
        return False
    if (
        given.get("apiVersion", resource.api_version).split("/")[0]
        != (resource.api_version.split("/")[0])
    ):
        return False
    field, _, value = source.fields.partition("=")
    return not field or given.get(field) == value


def _as_read(given: Object, source: Source[Any]) -> Any:
    body = msgspec.json.encode(given)
    if not isinstance(source, Listing):
        return as_custom_object(msgspec.json.decode(body, type=UncheckedObject))
    read = msgspec.json.decode(body, type=source.type)
    return source.condense()(read) if source.condense is not None else read
