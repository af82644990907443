"""Claiming pods and other dependents by owner reference and selector. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic

import msgspec

from kvestigate.client.cache import Cache, Change, Key, Named, V
from kvestigate.cluster.controllers.kinds import Kind
from kvestigate.kube import selectors
from kvestigate.kube.selectors import LabelSelector
from kvestigate.kube.views.meta import OwnerReference

OWNER = "owner"
"""The index of what is controlled, by the controller's uid."""
ORPHANS = "orphans"
"""The index of objects without a controller, by namespace."""
NAMESPACE = "namespace"


def controller_of(view: Named) -> OwnerReference | None:
    """The one owner that manages the object."""
    for owner in view.metadata.owner_references:
        if owner.controller:
            return owner
    return None


def controller_reference(kind: Kind[Any], owner: Named) -> dict[str, Any]:
    """The entry of `ownerReferences` that makes `owner` the manager."""
    return {
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def index_owners(cache: Cache[V]) -> None:
    """Make `OWNER`, `ORPHANS` and `NAMESPACE` known to a cache."""
    cache.add_index(OWNER, _owner_uid)
    cache.add_index(ORPHANS, _orphan_namespace)
    cache.add_index(NAMESPACE, _namespace)


def _owner_uid(view: Named) -> tuple[str, ...]:
    owner = controller_of(view)
    return (owner.uid,) if owner else ()


def _orphan_namespace(view: Named) -> tuple[str, ...]:
    return () if controller_of(view) else (view.metadata.namespace,)


def _namespace(view: Named) -> tuple[str, ...]:
    return (view.metadata.namespace,)


def selector_of(selector: Mapping[str, Any]) -> LabelSelector:
    """The compiled form of an object's `selector`; an empty one selects nothing here."""
    return _compiled(msgspec.json.encode(selector)) if selector else selectors.NOTHING


def any_selector(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Like `selector_of`, for kinds where an empty selector means everything."""
    return selectors.NOTHING if selector is None else _compiled(msgspec.json.encode(selector))


@lru_cache(maxsize=8192)
def _compiled(selector: bytes) -> LabelSelector:
    return selectors.from_label_selector(msgspec.json.decode(selector))


@dataclass(frozen=True, slots=True)
class Claim(Generic[V]):
    """The objects of an owner, and which of them have to be adopted or released."""

    owned: tuple[V, ...]
    """All objects of the owner, including those to adopt."""
    adopt: tuple[V, ...] = ()
    release: tuple[V, ...] = ()


def claim(owner: Named, selector: LabelSelector, candidates: Iterable[V]) -> Claim[V]:
    """The owner's own objects among candidates, and orphans that its selector matches."""
    owned, adopt, release = [], [], []
    leaving = owner.metadata.deletion_timestamp is not None
    for view in candidates:
        controller = controller_of(view)
        matches = selector.matches(view.metadata.labels)
        if controller is not None:
            if controller.uid != owner.metadata.uid:
                continue
            if matches or leaving:
                owned.append(view)
            else:
                release.append(view)
        elif matches and not leaving and view.metadata.deletion_timestamp is None:
            adopt.append(view)
            owned.append(view)
    return Claim(tuple(owned), tuple(adopt), tuple(release))


def candidates(cache: Cache[V], owner: Named) -> list[V]:
    """The candidates for `claim`: objects of the owner, and objects without a controller."""
    mine = cache.find(OWNER, owner.metadata.uid)
    return mine + cache.find(ORPHANS, owner.metadata.namespace)


def adoption(kind: Kind[Any], owner: Named, view: Named) -> dict[str, Any]:
    """The strategic merge patch by which `owner` takes `view` over."""
    reference = controller_reference(kind, owner)
    return {"metadata": {"uid": view.metadata.uid, "ownerReferences": [reference]}}


def release(owner: Named, view: Named) -> dict[str, Any]:
    """The strategic merge patch by which `owner` lets go of `view`."""
    gone = {"$patch": "delete", "uid": owner.metadata.uid}
    return {"metadata": {"uid": view.metadata.uid, "ownerReferences": [gone]}}


def itself(change: Change[Any]) -> Iterable[Key]:
    """A changed object concerns its own controller."""
    return (change.key,)


def _selector(owner: Any) -> Mapping[str, Any]:
    selector: Mapping[str, Any] = owner.spec.selector
    return selector


def owner_keys(
    kind: Kind[Any], owners: Cache[Any], selector: Callable[[Any], Mapping[str, Any]] = _selector
) -> Callable[[Change[Any]], Iterable[Key]]:
    """A changed dependent concerns its owner, or all owners whose selector matches it."""

    def keys(change: Change[Any]) -> Iterable[Key]:
        concerned: list[Key] = []
        for view in change.views:
            owner = controller_of(view)
            if owner is None:
                concerned += _takers(change.key, view, owners, selector)
            elif owner.kind == kind.resource.kind:
                concerned.append(change.key.sibling(owner.name))
        return dict.fromkeys(concerned)

    return keys


def _takers(
    key: Key, view: Named, owners: Cache[Any], selector: Callable[[Any], Mapping[str, Any]]
) -> Iterable[Key]:
    labels = view.metadata.labels
    if labels and view.metadata.deletion_timestamp is None:
        for owner in owners.find(NAMESPACE, key.namespace):
            if selector_of(selector(owner)).matches(labels):
                yield key.sibling(owner.metadata.name)
