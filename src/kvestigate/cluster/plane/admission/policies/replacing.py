"""The object of a write as those may see it who may change it, and putting another in its place.

They come before the server has set what only it sets: a new object has no uid yet.
"""

from __future__ import annotations

from kvestigate.cluster.plane.admission.interface import Write
from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.errors import BadRequest

_MADE_UP = 5
"""Letters that the server adds to a `generateName`."""


def early(write: Write, shown: Object) -> Object:
    """The object that mutating webhooks see: a new one lacks what the server will set."""
    if not write.creates:
        return shown
    meta = dict(shown["metadata"])
    for name in _set_by_server(write):
        meta.pop(name, None)
    return {**shown, "metadata": meta}


def _set_by_server(write: Write) -> list[str]:
    names = ["uid", "creationTimestamp"]
    if write.kind.counts_generations:
        names.append("generation")
    meta = write.new["metadata"]
    prefix, name = meta.get("generateName") or "", meta.get("name") or ""
    if prefix and name.startswith(prefix) and len(name) == len(prefix) + _MADE_UP:
        names.append("name")
    return names


def replace(write: Write, kind: Kind, patched: Object) -> bool:
    """Replace the object of the write by one at a kind's version. True if it differs."""
    if write.shown_as is not None:
        changed = write.shown_as.show(write.new) != patched
        write.shown_as.take(write.new, patched)
        return changed
    new = kind.to_stored(kind.normalised(patched))
    write.kind.default(new)
    _restore(write, new)
    changed = {**new, "kind": "", "apiVersion": ""} != {**write.new, "kind": "", "apiVersion": ""}
    write.new.clear()
    write.new.update(new)
    return changed


def _restore(write: Write, new: Object) -> None:
    before, meta = write.new, new["metadata"]
    for name in _set_by_server(write) if write.creates else ():
        if name in before["metadata"] and not (name == "name" and meta.get("name")):
            meta[name] = before["metadata"][name]
    if write.creates and write.kind.has_status and not write.kind.keeps_status_on_create:
        new.pop("status", None)
        if "status" in before:
            new["status"] = before["status"]
    namespace = write.info.namespace
    if namespace and meta.setdefault("namespace", namespace) != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
