"""The metadata every object carries: set on create, guarded on update. Pure."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from kvestigate.cluster.plane.model.kind import Kind, Object
from kvestigate.kube import causes, names
from kvestigate.kube.causes import Cause
from kvestigate.kube.fieldpaths import Path

ANNOTATIONS_LIMIT = 256 * 1024
_UTF8_MOST = 4
"""Bytes that a character may take."""

# Users cannot set these: what they send is dropped on create.
_SERVER_SET = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
"""The finalizers that stand for a propagation policy."""
_STANDARD = frozenset({"kubernetes", ORPHAN, FOREGROUND})

_METADATA = Path("metadata")
_LABELS = _METADATA.child("labels")
_ANNOTATIONS = _METADATA.child("annotations")


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as metav1.Time is written."""
    return _timestamp(math.floor(seconds))


@lru_cache(maxsize=16)
def _timestamp(seconds: int) -> str:
    """Cached: thousands of writes in a second have the same timestamp."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def begin(obj: Object, kind: Kind, namespace: str, now: float, source: random.Random) -> None:
    """Give a new object its identity."""
    meta: Object = obj.setdefault("metadata", {})
    if not _SERVER_SET.isdisjoint(meta):
        for name in _SERVER_SET:
            meta.pop(name, None)
    if kind.resource.namespaced:
        meta["namespace"] = namespace
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = names.generate_name(meta["generateName"], source)
    meta["uid"] = _uid(source)
    meta["creationTimestamp"] = timestamp(now)
    if kind.counts_generations and kind.starts_generations:
        meta["generation"] = 1


def _uid(source: random.Random) -> str:
    """A random UUID as text, without building a `uuid.UUID`."""
    digits = f"{source.getrandbits(128) & _UID_FREE | _UID_FIXED:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_UID_FREE = (1 << 128) - 1 & ~(0xF << 76 | 0xC << 60)
_UID_FIXED = 0x4 << 76 | 0x8 << 60
"""Version 4, and the variant that all of them are of."""


def carry_over(new: Object, old: Object) -> None:
    """Keep of the old metadata what an update leaves out or may not touch.

    What it may not touch but names differently is for `check_changed` to refuse.
    """
    meta, before = new["metadata"], old["metadata"]
    for name in ("creationTimestamp", "generation", "namespace"):
        if name in before:
            meta[name] = before[name]
        else:
            meta.pop(name, None)
    if not meta.get("uid"):
        meta["uid"] = before["uid"]
    if "deletionTimestamp" in before:
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in before:
        meta.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
    meta.pop("selfLink", None)


def merge_owners(obj: Object, warnings: list[str]) -> None:
    """Keep each owner reference once, and warn if one was repeated."""
    owners = obj["metadata"].get("ownerReferences")
    if not owners or len(owners) == 1:
        return
    kept: dict[bytes, Object] = {}
    repeated: dict[str, None] = {}
    for owner in owners:
        if kept.setdefault(msgspec.json.encode(owner, order="sorted"), owner) is not owner:
            repeated[str(owner.get("uid"))] = None
    if not repeated:
        return
    obj["metadata"]["ownerReferences"] = list(kept.values())
    warnings.append(
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references "
        "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {', '.join(repeated)}"
    )


def advance_generation(new: Object, old: Object, kind: Kind) -> None:
    if kind.is_new_generation(new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def check_changed(new: Object, old: Object, kind: Kind) -> list[Cause]:
    """What is wrong with the metadata of a changed object."""
    meta, before = new["metadata"], old["metadata"]
    if [*map(meta.get, _JUDGED)] == [*map(before.get, _JUDGED)]:
        return []  # it was fine before
    return _check_step(meta, before) + _check_changeable(meta, kind)


def check(meta: Object, kind: Kind) -> list[Cause]:
    """What is wrong with the metadata of a new object."""
    return _check_names(meta, kind) + _check_changeable(meta, kind)


def _check_names(meta: Object, kind: Kind) -> list[Cause]:
    problems: list[Cause] = []
    name = meta.get("name") or ""
    if generate := meta.get("generateName"):
        problems += [
            causes.invalid(_METADATA.child("generateName"), generate, problem)
            for problem in kind.name_problems(_completed(generate))
        ]
    if not name:
        problems.append(
            causes.required(_METADATA.child("name"), "name or generateName is required")
        )
    else:
        problems += [
            causes.invalid(_METADATA.child("name"), name, problem)
            for problem in kind.name_problems(name)
        ]
    return problems


_IMMUTABLE = ("name", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")
_JUDGED = (
    *_IMMUTABLE,
    "annotations",
    "finalizers",
    "generateName",
    "labels",
    "ownerReferences",
)


def _check_step(meta: Object, before: Object) -> list[Cause]:
    problems: list[Cause] = []
    if before.get("deletionTimestamp"):
        known = before.get("finalizers") or ()
        added = [name for name in meta.get("finalizers") or () if name not in known]
        if added:
            listed = ", ".join(causes.show(name) for name in sorted(added))
            problems.append(
                causes.forbidden(
                    _METADATA.child("finalizers"),
                    "no new finalizers can be added if the object is being deleted, found new "
                    f"finalizers []string{{{listed}}}",
                )
            )
    for name in _IMMUTABLE:
        if meta.get(name) != before.get(name):
            problems.append(
                causes.invalid(_METADATA.child(name), meta.get(name), "field is immutable")
            )
    return problems


def _check_changeable(meta: Object, kind: Kind) -> list[Cause]:
    """What is wrong with the metadata that users may change."""
    problems: list[Cause] = []
    if (generation := meta.get("generation", 0)) < 0:
        why = "must be greater than or equal to 0"
        problems.append(causes.invalid(_METADATA.child("generation"), generation, why))
    if labels := meta.get("labels"):
        problems += _check_labels(labels)
    if annotations := meta.get("annotations"):
        problems += _check_annotations(annotations)
    if owners := meta.get("ownerReferences"):
        problems += _check_owners(owners)
    if finalizers := meta.get("finalizers"):
        problems += _check_finalizers(finalizers, kind)
    return problems


def _completed(base: str) -> str:
    """A generateName to validate: a final hyphen is fine, because letters will follow it."""
    return f"{base[:-1]}a" if len(base) > 1 and base.endswith("-") else base


def _check_labels(labels: dict[str, str]) -> list[Cause]:
    problems = []
    for key, value in labels.items():
        if texts := names.qualified_name_problems(key):
            problems += [causes.invalid(_LABELS, key, text) for text in texts]
        if texts := names.label_value_problems(value):
            problems += [causes.invalid(_LABELS, value, text) for text in texts]
    return problems


def _check_annotations(annotations: dict[str, str]) -> list[Cause]:
    problems = [
        causes.invalid(_ANNOTATIONS, key, text)
        for key in annotations
        for text in names.qualified_name_problems(key.lower())
    ]
    size = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if size * _UTF8_MOST > ANNOTATIONS_LIMIT:
        size = sum(len(text.encode()) for pair in annotations.items() for text in pair)
    if size > ANNOTATIONS_LIMIT:
        problems.append(causes.too_long(_ANNOTATIONS, ANNOTATIONS_LIMIT))
    return problems


def _check_owners(owners: list[Object]) -> list[Cause]:
    path = _METADATA.child("ownerReferences")
    problems: list[Cause] = []
    controller = ""
    for owner in owners:
        problems += _check_owner(owner)
    for owner in owners:
        if not owner.get("controller"):
            continue
        named = f"{owner.get('kind', '')}/{owner.get('name', '')}"
        if controller:
            problems.append(
                causes.invalid(
                    path,
                    owners,
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {controller} and {named}',
                )
            )
        controller = controller or named
    return problems


def _check_owner(owner: Object) -> list[Cause]:
    path = _METADATA.child("ownerReferences")
    stated, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    group, _, version = stated.rpartition("/")
    if "/" in group:
        group, version = "", ""
    problems = []
    if not version:
        problems.append(
            causes.invalid(path.child("apiVersion"), stated, "version must not be empty")
        )
    for field in ("kind", "name", "uid"):
        if not owner.get(field):
            problems.append(causes.invalid(path.child(field), "", "must not be empty"))
    if (group, version, kind) == ("", "v1", "Event"):
        why = "/v1, Kind=Event is disallowed from being an owner"
        problems.append(causes.invalid(path, owner, why))
    return problems


def _check_finalizers(finalizers: list[str], kind: Kind) -> list[Cause]:
    path = _METADATA.child("finalizers")
    problems = [
        causes.invalid(path, name, text)
        for name in finalizers
        for text in names.qualified_name_problems(name)
    ]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        why = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        problems.append(causes.invalid(path, finalizers, why))
    if kind.type is None or kind.has_plain_finalizers:
        return problems
    # Finalizers of built-in kinds need a domain, unless Kubernetes itself defines them.
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return problems + [
        causes.invalid(path.index(index), name, why)
        for index, name in enumerate(finalizers)
        if "/" not in name and name not in _STANDARD
    ]
