"""Who owns which field: the managers of an object after a write and after an apply.

Every object lists its field managers in `metadata.managedFields`: a name ("kubectl", "deployer"),
an operation (Update or Apply), an apiVersion and a set of field paths. The sets are nested dicts
(`fieldset`); how lists and maps are divided into paths depends on the type (`shapes`). Two
operations change the sets:

- **`write`** (create, update, patch): the writer owns what it changed, added or set anew, and
  everybody else loses these fields. The old and the new object are compared; fields that are gone
  from the object are gone from all sets.
- **`apply`** (server-side apply): the applier owns what its configuration *mentions*, changed or
  not. The configuration is merged into the live object. A field that another manager owns and that
  gets another value is a conflict: `Contested`, unless `force` takes it. A field that the applier
  mentioned the last time and no longer does is removed from the object, if nobody else owns it
  (`_pruned`).

What makes this hard:

- A manager's set speaks the apiVersion in which it was written. A change is compared once for each
  version among the managers (`Writer.elsewhere`), so that a field that is named otherwise in
  another version counts as the same field. A version that is no longer served drops its managers.
- A creator owns everything it sent, so `of_creator` lists the fields without comparing (this is the
  path of every CREATE, and the reason for the layouts in `shapes`).
- Writers who write the same fields again are common (status updates of controllers). `_has_all`
  recognises them and changes no more than the time.
- Some fields belong to nobody: the identity of the object and what the server sets (`UNOWNED`).
- Elements of a list that lack their keys cannot be named: `Unkeyed` is raised, and the callers
  leave the managers as they were.

The rules are those of structured-merge-diff, held against kube-apiserver by `tests/real/test_apply`
and the scripts of the topics `apply` and `managed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kvestigate.errors import Conflict
from kvestigate.kube.apply import fieldset
from kvestigate.kube.apply.comparing import Comparison, compare, compare_new, said_of_new
from kvestigate.kube.apply.fieldset import FieldSet
from kvestigate.kube.apply.managers import Entry, Manager, Managers, capped
from kvestigate.kube.apply.mentioning import mentioned, with_named
from kvestigate.kube.apply.merging import merge, remove
from kvestigate.kube.apply.shapes import Shape

Object = dict[str, Any]

UNOWNED: FieldSet = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:clusterName": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}
"""What nobody manages: it is the server's, or the object's identity."""

_IDENTITY = ("apiVersion", "kind")
_SERVERS = frozenset(step.removeprefix("f:") for step in UNOWNED["f:metadata"])

Comparer = Callable[[str, Object, Object], Comparison | None]
"""Compares two states of the object at another apiVersion; None if that is not served."""


class Contested(Exception):
    """An apply would take what others own, and was not told to."""

    def __init__(self, fields: Mapping[Manager, FieldSet]) -> None:
        super().__init__()
        self.fields = fields


class Writer(msgspec.Struct, frozen=True):
    """Who writes, and in which words."""

    manager: Manager
    version: str
    """The apiVersion in which the object is given."""
    shape: Shape
    elsewhere: Comparer
    ignored: FieldSet = fieldset.EMPTY
    """What the writer cannot change, whatever it sends: the status, or all but the status."""


def write(
    old: Object | None, new: Object, managers: Managers, by: Writer, now: str | None
) -> Managers:
    """The managers after an update from `old` to `new`, or its creation. Raises `Unkeyed`."""
    if old is None and not managers:
        taken = of_creator(new, by.shape, by.ignored)
        return {by.manager: Entry(taken, by.version, now)} if taken else {}
    shape = by.shape
    changes = (
        compare_new(_bare(new), shape) if old is None else compare(_bare(old), _bare(new), shape)
    )
    changed = changes.ignoring(by.ignored)
    if not (changed.removed or changed.modified or changed.added):
        return managers
    if not changed.removed and _has_all(managers, by, changed.touched):
        own = managers[by.manager]
        if own.time == now:
            return managers
        return {**managers, by.manager: Entry(own.fields, own.version, now)}
    rest, _ = _yielded(managers, None, changed, by, old, new)
    taken = fieldset.difference(changed.touched, UNOWNED)
    if taken:
        previous = rest.get(by.manager)
        if previous is not None:
            taken = fieldset.union(taken, previous.fields)
        rest[by.manager] = Entry(taken, by.version, now)
    return capped(rest)


def _has_all(managers: Managers, by: Writer, touched: FieldSet) -> bool:
    """Whether the writer is the one that has what it touches, as of most who write again."""
    own = managers.get(by.manager)
    if own is None or fieldset.difference(touched, own.fields):
        return False
    return all(
        entry.version == by.version
        and (entry is own or not fieldset.intersection(entry.fields, touched))
        for entry in managers.values()
    )


def of_creator(new: Object, shape: Shape, ignored: FieldSet) -> FieldSet:
    """What of a new object is its creator's: all of it. Raises `Unkeyed`."""
    own = {name: value for name, value in new.items() if name not in _IDENTITY}
    if meta := own.get("metadata"):
        own["metadata"] = {name: value for name, value in meta.items() if name not in _SERVERS}
    return fieldset.without(said_of_new(own, shape), ignored)


def apply(
    live: Object, config: Object, managers: Managers, by: Writer, *, force: bool, now: str | None
) -> tuple[Object | None, Managers]:
    """What `live` becomes, None if it stays as it is, and its managers. Raises `Contested`."""
    live, shape = _bare(live), by.shape
    before = managers.get(by.manager)
    fields = fieldset.without(mentioned(config, shape), by.ignored)
    managers = {**managers, by.manager: Entry(fields, by.version, before.time if before else None)}
    new = merge(live, config, shape)
    # Who says at least what it said the last time leaves nothing behind.
    if before is not None and fieldset.difference(before.fields, fields):
        new = _pruned(new, managers, before.fields, shape)
    changed = compare(live, new, shape).ignoring(by.ignored)
    rest, conflicts = _yielded(managers, by.manager, changed, by, live, new)
    if conflicts and not force:
        raise Contested(conflicts)
    if owned := fieldset.difference(fields, UNOWNED):
        time = now if new != live else before.time if before else None
        rest[by.manager] = Entry(owned, by.version, time)
    else:
        rest.pop(by.manager, None)
    return (None if new == live else new), rest


def _bare(obj: Object) -> Object:
    """Without the list of managers, which owns nothing and is not merged."""
    meta = obj.get("metadata")
    if not meta or "managedFields" not in meta:
        return obj
    kept = meta.copy()
    del kept["managedFields"]
    return {**obj, "metadata": kept}


def _yielded(
    managers: Managers,
    writer: Manager | None,
    changed: Comparison,
    by: Writer,
    old: Object | None,
    new: Object,
) -> tuple[Managers, dict[Manager, FieldSet]]:
    """The managers without what was taken from them or is gone, and what was taken."""
    seen: dict[str, Comparison | None] = {by.version: changed}
    rest: Managers = {}
    conflicts: dict[Manager, FieldSet] = {}
    for manager, entry in managers.items():
        if manager == writer:
            if entry.fields:
                rest[manager] = entry
            continue
        if entry.version not in seen:
            seen[entry.version] = None if old is None else by.elsewhere(entry.version, old, new)
        change = seen[entry.version]
        if change is None:
            continue
        taken = fieldset.intersection(entry.fields, change.touched)
        if taken:
            conflicts[manager] = taken
        fields = entry.fields
        for gone in (taken, change.removed):
            fields = fieldset.difference(fields, gone) if gone else fields
        if fields:
            rest[manager] = Entry(fields, entry.version, entry.time)
    return rest, conflicts


def _pruned(merged: Object, managers: Managers, last: FieldSet, shape: Shape) -> Object:
    """Without what the applier named the last time, unless it or anybody names it now."""
    last = with_named(last, shape)
    pruned = remove(merged, last, shape)
    present = with_named(mentioned(merged, shape), shape)
    owned: FieldSet = {}
    for entry in managers.values():
        owned = fieldset.union(owned, with_named(entry.fields, shape))
    left = fieldset.union(with_named(mentioned(pruned, shape), shape), owned)
    pruned = remove(merged, fieldset.difference(present, left), shape)
    left = with_named(mentioned(pruned, shape), shape)
    gone = fieldset.intersection(fieldset.difference(present, left), last)
    return remove(merged, gone, shape)


def refusal(contested: Contested) -> Conflict:
    """The answer to an apply that would take what others own."""
    paths = {
        manager: [fieldset.text(path) for path in fieldset.paths(contested.fields[manager])]
        for manager in sorted(contested.fields)
    }
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
        for manager, theirs in paths.items()
        for path in theirs
    ]
    if len(causes) == 1:
        what = f"1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for manager, theirs in paths.items():
            lines += [f"conflicts with {manager}:", *(f"- {path}" for path in theirs)]
        what = f"{len(causes)} conflicts: " + "\n".join(lines)
    return Conflict(f"Apply failed with {what}", details={"causes": causes})
