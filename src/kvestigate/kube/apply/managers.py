"""The managers of an object's fields, and `metadata.managedFields` in which they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from kvestigate.kube.apply import fieldset
from kvestigate.kube.apply.fieldset import FieldSet, Malformed

APPLY = "Apply"
UPDATE = "Update"

MAX_UPDATERS = 10
"""The oldest updates beyond so many are summed up."""
ANCIENT = "ancient-changes"
BEFORE_APPLY = "before-first-apply"


class Manager(NamedTuple):
    """What tells one entry from another."""

    name: str
    operation: str
    """`Apply` or `Update`"""
    version: str = ""
    """The apiVersion of updates. An applier has one entry, whatever version it speaks."""
    subresource: str = ""

    def __str__(self) -> str:
        """As conflicts name it: `"kubectl" with subresource "scale" using v1`."""
        shown = fieldset.value_text(self.name)
        if self.subresource:
            shown += f' with subresource "{self.subresource}"'
        return f"{shown} using {self.version}" if self.operation == UPDATE else shown


class Entry(msgspec.Struct, frozen=True):
    fields: FieldSet
    version: str
    """The apiVersion in which the fields are named."""
    time: str | None = None


Managers = dict[Manager, Entry]


def manager(name: str, operation: str, version: str, subresource: str) -> Manager:
    return Manager(name, operation, "" if operation == APPLY else version, subresource)


def decode(entries: Sequence[Mapping[str, Any]] | None) -> Managers:
    """Raises `Malformed`."""
    managers: Managers = {}
    for entry in entries or ():
        operation, version = entry.get("operation"), entry.get("apiVersion") or ""
        if operation not in (APPLY, UPDATE):
            raise Malformed("operation must be `Apply` or `Update`")
        if not version:
            raise Malformed("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise Malformed(f"fieldsType {entry.get('fieldsType')!r}")
        key = manager(
            entry.get("manager") or "", operation, version, entry.get("subresource") or ""
        )
        managers[key] = Entry(entry.get("fieldsV1") or {}, version, entry.get("time"))
    return managers


def decode_foreign(entries: Sequence[Mapping[str, Any]] | None) -> Managers:
    """Entries that a client sent, whose sets may be in any form. Raises `Malformed`."""
    managers = decode(entries)
    for key, entry in managers.items():
        fields = fieldset.parse(entry.fields)
        fields.pop(fieldset.SELF, None)
        managers[key] = Entry(fields, entry.version, entry.time)
    return managers


def encode(managers: Managers) -> list[dict[str, Any]]:
    """The entries in their order: appliers first, each group from the oldest on."""
    if len(managers) == 1:
        return [_encode(key, of) for key, of in managers.items()]
    return [_encode(key, managers[key]) for key in sorted(managers, key=_order(managers))]


def _encode(key: Manager, of: Entry) -> dict[str, Any]:
    return entry(key.name, key.operation, of.version, of.time, of.fields, key.subresource)


def entry(
    name: str, operation: str, version: str, time: str | None, fields: FieldSet, subresource: str
) -> dict[str, Any]:
    """What `managedFields` holds of one manager; what is empty is left out."""
    encoded: dict[str, Any] = {"manager": name} if name else {}
    encoded["operation"] = operation
    encoded["apiVersion"] = version
    if time:
        encoded["time"] = time
    encoded["fieldsType"] = "FieldsV1"
    encoded["fieldsV1"] = fields
    if subresource:
        encoded["subresource"] = subresource
    return encoded


def _order(managers: Managers) -> Any:
    return lambda key: (
        key.operation,
        managers[key].time or "",
        key.name,
        managers[key].version,
        key.subresource,
    )


def is_reset(entries: Any) -> bool:
    """Whether a client asks to forget all managers: `[]` or `[{}]`."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def capped(managers: Managers) -> Managers:
    """With the oldest updates summed up, a bucket for each version, if there are too many."""
    updaters = [key for key in managers if key.operation == UPDATE]
    if len(updaters) <= MAX_UPDATERS:
        return managers
    updaters.sort(key=lambda key: (managers[key].time or "", key))
    kept, excess = dict(managers), len(updaters) - MAX_UPDATERS
    first: dict[str, Manager] = {}
    for key in updaters:
        if not excess:
            break
        old = managers[key]
        if old.version not in first:
            first[old.version] = key
            continue
        bucket = Manager(ANCIENT, UPDATE, old.version)
        if bucket not in kept:
            kept[bucket] = kept.pop(first[old.version])
        del kept[key]
        fields = fieldset.union(kept[bucket].fields, old.fields)
        kept[bucket] = Entry(fields, old.version, old.time)
        excess -= 1
    return kept
