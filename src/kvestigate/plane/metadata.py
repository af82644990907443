"""The metadata every object carries: set on create, guarded on update. Pure."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime

from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause
from kvestigate.kube.fieldpaths import Path
from kvestigate.plane.kinds.kind import Kind, Object

ANNOTATIONS_LIMIT = 256 * 1024

# Users cannot set these; what they send is dropped on create and carried over on update.
SERVER_SET = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")

_METADATA = Path("metadata")


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as metav1.Time is written."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def begin(obj: Object, kind: Kind, namespace: str, now: float, source: random.Random) -> None:
    """Give a new object its identity."""
    meta: Object = obj.setdefault("metadata", {})
    for name in SERVER_SET:
        meta.pop(name, None)
    meta.pop("resourceVersion", None)
    meta.pop("generation", None)
    meta.pop("selfLink", None)
    if kind.resource.namespaced:
        meta["namespace"] = namespace
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = names.generate_name(meta["generateName"], source)
    meta["uid"] = str(uuid.UUID(int=source.getrandbits(128), version=4))
    meta["creationTimestamp"] = timestamp(now)
    if kind.counts_generations:
        meta["generation"] = 1


def carry_over(new: Object, old: Object) -> None:
    """Keep of the old metadata what an update may not touch."""
    meta, before = new["metadata"], old["metadata"]
    for name in (*SERVER_SET, "generation", "namespace", "generateName"):
        if name in before:
            meta[name] = before[name]
        else:
            meta.pop(name, None)
    meta.pop("selfLink", None)


def advance_generation(new: Object, old: Object, kind: Kind) -> None:
    if kind.is_new_generation(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def check(obj: Object, kind: Kind) -> list[Cause]:
    meta = obj["metadata"]
    found: list[Cause] = []
    name = meta.get("name") or ""
    if generate := meta.get("generateName"):
        found += (
            causes.invalid(_METADATA.child("generateName"), generate, problem)
            for problem in kind.name_problems(_completed(generate))
        )
    if not name:
        found.append(causes.required(_METADATA.child("name"), "name or generateName is required"))
    else:
        found += (
            causes.invalid(_METADATA.child("name"), name, problem)
            for problem in kind.name_problems(name)
        )
    found += _check_labels(meta.get("labels") or {})
    found += _check_annotations(meta.get("annotations") or {})
    found += _check_owners(meta.get("ownerReferences") or [])
    found += _check_finalizers(meta.get("finalizers") or [])
    return found


def check_update(new: Object, old: Object) -> list[Cause]:
    found: list[Cause] = []
    added = set(new["metadata"].get("finalizers") or ()) - set(
        old["metadata"].get("finalizers") or ()
    )
    if added and old["metadata"].get("deletionTimestamp"):
        found.append(
            causes.forbidden(
                _METADATA.child("finalizers"),
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers []string{{{', '.join(causes.show(name) for name in sorted(added))}}}",
            )
        )
    return found


def _completed(base: str) -> str:
    """A generateName as it is judged: a hyphen at its end will be followed by letters."""
    return f"{base[:-1]}a" if len(base) > 1 and base.endswith("-") else base


def _check_labels(labels: dict[str, str]) -> list[Cause]:
    path = _METADATA.child("labels")
    found = []
    for key, value in labels.items():
        found += [causes.invalid(path, key, text) for text in names.qualified_name_problems(key)]
        found += [causes.invalid(path, value, text) for text in names.label_value_problems(value)]
    return found


def _check_annotations(annotations: dict[str, str]) -> list[Cause]:
    path = _METADATA.child("annotations")
    found = [
        causes.invalid(path, key, text)
        for key in annotations
        for text in names.qualified_name_problems(key.lower())
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_LIMIT:
        found.append(causes.too_long(path, ANNOTATIONS_LIMIT))
    return found


def _check_owners(owners: list[Object]) -> list[Cause]:
    found = []
    controllers = 0
    for index, owner in enumerate(owners):
        path = _METADATA.child("ownerReferences").index(index)
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                found.append(causes.invalid(path.child(field), "", f"{field} must not be empty"))
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        found.append(
            causes.invalid(
                _METADATA.child("ownerReferences"),
                owners,
                "Only one reference can have Controller set to true.",
            )
        )
    return found


def _check_finalizers(finalizers: list[str]) -> list[Cause]:
    path = _METADATA.child("finalizers")
    return [
        causes.invalid(path, name, text)
        for name in finalizers
        for text in names.qualified_name_problems(name)
    ]
