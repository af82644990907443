"""The resources of a plane that a request asks for and that its user may list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kvestigate import errors
from kvestigate.cluster.plane.access.authz.rbac import denial
from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.store.model import ResourceKey
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.tenancy.environment.errand import Errand
from kvestigate.cluster.plane.verbs.subresources.registry import VIRTUAL


@dataclass(frozen=True, slots=True)
class Visible:
    kinds: Mapping[ResourceKey, Kind]
    """By where their objects are kept, sorted, at the version in which they are kept."""
    hidden: tuple[ResourceKey, ...]
    """Left out because the user may not list them, though nobody asked to leave them out."""


def stored_kinds(*states: PlaneState) -> Mapping[ResourceKey, Kind]:
    """Every resource of a plane that has objects or could have, by group and plural, sorted."""
    first, *more = dict.fromkeys(map(types.of, states))
    kinds = _stored(first)
    for known in more:
        kinds = {**kinds, **_stored(known)}
    return {key: kinds[key] for key in sorted(kinds)} if more else kinds


@lru_cache(maxsize=1024)
def _stored(known: Types) -> Mapping[ResourceKey, Kind]:
    kinds = {
        kind.key: kind.storage
        for kind in known
        if kind.key not in VIRTUAL and "list" in kind.resource.verbs
    }
    return {key: kinds[key] for key in sorted(kinds)}


def visible(errand: Errand, *states: PlaneState) -> Visible:
    """The visible resources of the states. States may be past ones; rights are the current ones.

    The parameter `resource` has plurals with commas between them, `deployments.apps` too.
    """
    kinds = stored_kinds(*states)
    resources = errand.info.params.get("resource", "")
    if resources:
        kinds = _chosen(kinds, resources)
    shown, hidden = {}, []
    for key, kind in kinds.items():
        info = listing(key)
        if errand.may(errand.plane.state, info):
            shown[key] = kind
        elif resources:
            raise denial(errand.user, info)
        else:
            hidden.append(key)
    return Visible(shown, tuple(hidden))


@lru_cache(maxsize=4096)
def listing(key: ResourceKey) -> RequestInfo:
    """The request to list a resource everywhere, as authorizers see it: whatever its version."""
    group, plural = key
    root = f"/apis/{group}" if group else "/api"
    return RequestInfo("GET", f"{root}/*/{plural}", "list", group, "*", plural)


def _chosen(kinds: Mapping[ResourceKey, Kind], resources: str) -> dict[ResourceKey, Kind]:
    wanted = [name for each in resources.split(",") if (name := each.strip())]
    keys: set[ResourceKey] = set()
    for name in wanted:
        plural, _, group = name.partition(".")
        matches = {key for key in kinds if key[1] == plural and group in ("", key[0])}
        if not matches:
            raise errors.BadRequest(f'resource: this plane has no resource "{name}"')
        keys |= matches
    return {key: kind for key, kind in kinds.items() if key in keys}
