"""GET /diff: what differs between two revisions, checkpoints or planes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import UNSET, Raw, Struct, UnsetType, json

from kvestigate import errors
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.response import answer
from kvestigate.cluster.plane.store.model import Item
from kvestigate.cluster.plane.store.state import Difference, diff
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.tenancy.environment.field_changes import FieldChange, field_changes
from kvestigate.cluster.plane.tenancy.environment.points import Point, point
from kvestigate.cluster.plane.tenancy.environment.trimming import trimmed
from kvestigate.cluster.plane.tenancy.environment.visible import listing, visible
from kvestigate.http.message import Response

_AT_ONCE = 8
"""Objects that are compared without a pause: what takes half a millisecond."""


class ObjectChange(Struct, frozen=True):
    """One object that differs between the two states."""

    type: str
    """ADDED, MODIFIED or DELETED"""
    group: str
    resource: str
    namespace: str
    name: str
    object: Raw | UnsetType = UNSET
    """The whole object, if only one of the states has it."""
    fields: list[FieldChange] | UnsetType = UNSET
    """The fields that differ, if both states have the object."""


async def difference(errand: Errand) -> Response:
    params = errand.info.params
    if not params.get("from"):
        raise errors.BadRequest(
            "from: missing; write a revision (1042), checkpoint:NAME or plane:ID"
        )
    before = await point(errand, "from", params["from"])
    after = Point(errand.plane, errand.plane.state)
    if params.get("to"):
        after = await point(errand, "to", params["to"])
    shown = visible(errand, before.state, after.state).kinds
    for other in {before.plane, after.plane} - {errand.plane}:
        for key in shown:
            errand.require_elsewhere(other.state, listing(key))
    differences = (each for each in diff(before.state, after.state) if each.resource in shown)
    changes: list[ObjectChange] = []
    while some := list(islice(differences, _AT_ONCE)):
        changes += object_changes(some)
        await errand.pause()
    counts = Counter(change.type for change in changes)
    return answer.json_value(
        {
            "cluster": errand.plane.name,
            "from": _end(before),
            "to": _end(after),
            "summary": {
                "added": counts["ADDED"],
                "modified": counts["MODIFIED"],
                "deleted": counts["DELETED"],
            },
            "changes": changes,
        }
    )


def object_changes(differences: Iterable[Difference]) -> Iterator[ObjectChange]:
    """The object without the fields that differ after every restore or fork. Pure."""
    for (group, resource), before, after in differences:
        item = after or before
        assert item is not None  # a difference has at least one side
        who = (group, resource, item.namespace, item.name)
        if before is None or after is None:
            kind = "ADDED" if before is None else "DELETED"
            yield ObjectChange(kind, *who, object=Raw(trimmed(item)))
        elif fields := field_changes(content(before), content(after)):
            yield ObjectChange("MODIFIED", *who, fields=fields)


def content(item: Item) -> Object:
    """The object without the fields that change with every write."""
    obj: Object = json.decode(trimmed(item))
    obj["metadata"].pop("resourceVersion", None)
    return obj


def _end(end: Point) -> dict[str, str]:
    return {"cluster": end.plane.name, "resourceVersion": str(end.state.revision)}
