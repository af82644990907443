"""Who owns an object, up to the root, and what it owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.client.discovery import Discovery
from kvestigate.console.objects import Place, Relative
from kvestigate.errors import KvestigateError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import OwnerReference, PartialObject

_DEEP = 5
_SHOWN = 30
"""Objects of one owner that are shown."""
_OWNED: dict[tuple[str, str], tuple[str, ...]] = {
    ("apps", "deployments"): ("replicasets", "pods"),
    ("apps", "replicasets"): ("pods",),
    ("apps", "statefulsets"): ("pods",),
    ("apps", "daemonsets"): ("pods",),
    ("batch", "jobs"): ("pods",),
    ("batch", "cronjobs"): ("jobs",),
}
"""What a workload owns, and what that owns."""


async def relatives(
    api: Api, discovery: Discovery, place: Place, body: dict[str, Any]
) -> Sequence[Relative]:
    """The roots above the object. What may not be read is left out: the rest is still true."""
    own = Relative(place.resource.qualified, place.namespace, place.name)
    own = await _with_owned(api, place, body, own)
    return await _roots(api, discovery, own, body["metadata"], _DEEP)


async def _roots(
    api: Api, discovery: Discovery, below: Relative, metadata: dict[str, Any], depth: int
) -> Sequence[Relative]:
    owners = metadata.get("ownerReferences") or ()
    roots: list[Relative] = []
    for owner in owners if depth else ():
        resource = await _resource(discovery, owner.get("apiVersion", ""), owner.get("kind", ""))
        if resource is None:
            continue
        namespace = below.namespace if resource.namespaced else ""
        above = Relative(resource.qualified, namespace, owner["name"], owned=(below,))
        try:
            body = await api.get(resource, owner["name"], namespace=namespace or None)
            roots += await _roots(api, discovery, above, body["metadata"], depth - 1)
        except KvestigateError as error:
            roots.append(replace(above, state=f"(cannot be read: {error.message})"))
    return roots or [below]


async def _resource(discovery: Discovery, api_version: str, kind: str) -> Resource | None:
    try:
        return builtins.resource(kind)
    except KvestigateError:
        pass
    try:
        return (await discovery.registry()).for_kind(api_version, kind)
    except KvestigateError:
        return None


async def _with_owned(api: Api, place: Place, body: dict[str, Any], own: Relative) -> Relative:
    kinds = _OWNED.get((place.resource.group, place.resource.plural), ())
    selection = _selection(place.namespace, body)
    levels: list[tuple[Resource, Sequence[PartialObject]]] = []
    for kind in kinds:
        resource = builtins.resource(kind)
        try:
            page = await api.list(resource, selection, type=PartialObject)
        except KvestigateError:
            break
        levels.append((resource, page.items))
    return _tree(own, str(body["metadata"].get("uid", "")), levels)


def _selection(namespace: str, body: dict[str, Any]) -> Selection:
    selector = (body.get("spec") or {}).get("selector")
    if not isinstance(selector, dict) or not selector.get("matchLabels"):
        return Selection(namespace or None)
    labels = ",".join(f"{key}={value}" for key, value in selector["matchLabels"].items())
    return Selection(namespace or None, labels=labels)


def _tree(
    own: Relative, uid: str, levels: Sequence[tuple[Resource, Sequence[PartialObject]]]
) -> Relative:
    """Pure: the objects of the levels below the owner with that uid."""
    if not levels:
        return own
    (resource, objects), *below = levels
    owned = [item for item in objects if _is_owned(item.metadata.owner_references, uid)]
    shown = [
        _tree(
            Relative(resource.qualified, item.metadata.namespace, item.metadata.name),
            item.metadata.uid,
            below,
        )
        for item in owned[:_SHOWN]
    ]
    shown.sort(key=lambda relative: (not relative.owned, relative.name))
    return replace(own, owned=tuple(shown), left_out=len(owned) - len(shown))


def _is_owned(owners: Sequence[OwnerReference], uid: str) -> bool:
    return any(owner.uid == uid for owner in owners)
