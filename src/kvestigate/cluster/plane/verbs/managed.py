"""Who set which field: `metadata.managedFields` after a write or an apply."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.cluster.plane.model.metadata import timestamp
from kvestigate.cluster.plane.request.call import Call
from kvestigate.kube import normal
from kvestigate.kube.apply import comparing, kubectl, managers, ownership
from kvestigate.kube.apply.elements import Unkeyed
from kvestigate.kube.apply.fieldset import EMPTY, FieldSet, Malformed
from kvestigate.kube.apply.managers import APPLY, UPDATE, Manager, Managers
from kvestigate.kube.apply.ownership import Contested, Writer

FIELD = "managedFields"

_STATUS: FieldSet = {"f:status": {}}


def track(call: Call, new: Object, old: Object | None) -> None:
    """Note the fields that this write changes as its manager's.

    Called before the server changes anything itself: what it adds belongs to nobody.
    """
    meta = new["metadata"]
    sent = meta.pop(FIELD, None)
    if old is None and not sent:
        after = _of_creator(call, new)
    else:
        before = None if old is None else old["metadata"].get(FIELD)
        after = _after_write(call, new, old, sent, before)
    if after:
        meta[FIELD] = after


def _of_creator(call: Call, new: Object) -> list[Any] | None:
    """The one entry of a new object."""
    served, part = call.served, call.info.subresource
    shown = _at(served, call.kind, new)
    try:
        fields = ownership.of_creator(shown, served.shape, _ignored(call.kind, part))
    except Unkeyed:
        return None
    if not fields:
        return None
    version = served.resource.api_version
    return [managers.entry(call.field_manager, UPDATE, version, _now(call), fields, part)]


def _after_write(
    call: Call, new: Object, old: Object | None, sent: Any, before: list[Any] | None
) -> list[Any] | None:
    known = _known(sent, before, by_part=bool(call.info.subresource))
    if old is not None and not known:
        return None  # somebody chose to forget the managers: an apply starts anew
    served = call.served
    shown = _at(served, call.kind, new)
    shown_before = None if old is None else _at(served, call.kind, old)
    by = _writer(call, call.field_manager, UPDATE)
    try:
        after = ownership.write(shown_before, shown, known, by, _now(call))
    except Unkeyed:
        return before
    return managers.encode(after) if after is not known or sent != before else before


def _known(sent: Any, before: list[Any] | None, *, by_part: bool) -> Managers:
    """The managers to start from: as sent, if that makes sense, else as they were."""
    if sent != before and not by_part:
        if managers.is_reset(sent):
            return {}
        try:
            if known := managers.decode_foreign(sent):
                return known
        except Malformed:
            pass
    return managers.decode(before)


def apply(call: Call, config: Object, live: Object | None, *, speaking: str = "") -> Object:
    """The live object, or a new one, with a configuration applied; in the version served.

    `speaking` is the apiVersion of a subresource with a kind of its own.
    """
    served = call.served
    now = _now(call)
    shown = _empty(served) if live is None else _at(served, call.kind, live)
    known = managers.decode(shown["metadata"].get(FIELD)) if live is not None else {}
    if live is not None and not known:
        first = _writer(call, managers.BEFORE_APPLY, UPDATE)
        known = ownership.write(None, shown, {}, first, now)
    if speaking:
        known = {_spoken(key, speaking): entry for key, entry in known.items()}
    by = _writer(call, call.field_manager, APPLY)
    step = kubectl.apply if call.field_manager == kubectl.NAME else ownership.apply
    try:
        new, after = step(shown, config, known, by, force=call.info.flag("force"), now=now)
    except Contested as contested:
        raise ownership.refusal(contested) from None
    if new is None:
        new = shown
    applied = {**new, "metadata": dict(new.get("metadata") or {})}
    applied["metadata"].pop(FIELD, None)
    if after:
        applied["metadata"][FIELD] = managers.encode(after)
    return applied


def _spoken(manager: Manager, version: str) -> Manager:
    """As a conflict names it to a client that knows only that version."""
    return manager._replace(version=version) if manager.operation == UPDATE else manager


def settle(new: Object, old: Object) -> None:
    """Keep the old entries if a write changed nothing but their times."""
    after, before = new["metadata"].get(FIELD), old["metadata"].get(FIELD)
    if not after or not before or after == before or _timeless(after) != _timeless(before):
        return
    if _unmanaged(new) == _unmanaged(old):
        new["metadata"][FIELD] = before


def _timeless(entries: list[Object]) -> list[Object]:
    return [{**entry, "time": None} for entry in entries]


def _unmanaged(obj: Object) -> Object:
    kept = {k: v for k, v in obj["metadata"].items() if k not in (FIELD, "resourceVersion")}
    return {**obj, "metadata": kept}


def _writer(call: Call, name: str, operation: str) -> Writer:
    version, part = call.served.resource.api_version, call.info.subresource
    return Writer(
        managers.manager(name, operation, version, part),
        version,
        call.served.shape,
        lambda version, old, new: _compare_at(call, version, old, new),
        _ignored(call.kind, part),
    )


def _ignored(kind: Kind, subresource: str) -> FieldSet:
    if subresource not in kind.status_subresources:
        return _STATUS if kind.has_status and not subresource else EMPTY
    kept: FieldSet = {f"f:{field}": {} for field in kind.status_keeps}
    if kind.status_carries_metadata and not kept:
        return {"f:spec": {}}
    return {"f:spec": {}, "f:metadata": kept}


def _compare_at(call: Call, version: str, old: Object, new: Object) -> comparing.Comparison | None:
    """The step from `old` to `new`, both in the version served, as another version shows it."""
    group, _, number = version.rpartition("/")
    resource = call.served.resource
    if group != resource.group:
        return None  # fields are converted between versions, not between groups
    there = types.of(call.plane.tip).get(group, number, resource.plural)
    if there is None:
        return None
    left, right = (there.from_stored(call.served.to_stored(_copy(obj))) for obj in (old, new))
    return comparing.compare(left, right, there.shape)


def _empty(kind: Kind) -> Object:
    """The object before there was one."""
    named = {"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}
    made = {} if kind.type is None else normal.empty(kind.type)
    return {"metadata": {}, **made, **named}


def _at(served: Kind, stored: Kind, obj: Object) -> Object:
    """A stored object in the version served."""
    return obj if served is stored else served.from_stored(_copy(obj))


def _copy(obj: Object) -> Object:
    """Conversions may change what they are given."""
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


def _now(call: Call) -> str | None:
    # What goes through a Scale is converted there and back upstream, and its time is lost.
    return None if call.info.subresource == "scale" else timestamp(call.clock.now())
