"""What else goes when an object goes: what it owns, what is in it, what is of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import KvestigateError
from kvestigate.kube.resources import Registry, Resource
from kvestigate.kube.views.meta import PartialObject

_TOGETHER = 8
"""Lists under way at a time."""

Progress = Callable[[str, int], None]
"""Called with a type and how many objects of it were looked at."""


@dataclass(frozen=True, slots=True)
class Dependents:
    counts: dict[str, int]
    """`replicasets.apps` -> how many of them go, too."""
    unseen: tuple[str, ...] = ()
    """Types that may not be listed: there may be more of those."""


@dataclass(frozen=True, slots=True)
class Owned:
    uid: str
    type: str
    owners: frozenset[str]


async def dependents(
    api: Api,
    registry: Registry,
    resource: Resource,
    body: Mapping[str, Any],
    progress: Progress | None = None,
) -> Dependents:
    """What the server would delete after `body`, an object of `resource`."""
    metadata = body["metadata"]
    if (resource.group, resource.plural) == ("", "namespaces"):
        look = _Look(api, metadata["name"], everything=True, progress=progress)
        types = [kind for kind in _listable(registry) if kind.namespaced]
    elif resource.qualified == "customresourcedefinitions.apiextensions.k8s.io":
        look = _Look(api, None, everything=True, progress=progress)
        spec = body["spec"]
        types = [
            kind
            for kind in _listable(registry)
            if (kind.group, kind.plural) == (spec["group"], spec["names"]["plural"])
        ]
    else:
        look = _Look(api, metadata.get("namespace"), everything=False, progress=progress)
        types = [kind for kind in _listable(registry) if kind.namespaced or not resource.namespaced]
    await look.at(types)
    return Dependents(look.doomed_with(metadata["uid"]), tuple(sorted(look.unseen)))


def _listable(registry: Registry) -> Iterable[Resource]:
    """Each type once, in the version that the server prefers."""
    by_kind: dict[tuple[str, str], Resource] = {}
    for resource in registry:
        # Events come in two groups, and nobody minds their going.
        if {"list", "delete"} <= set(resource.verbs) and resource.plural != "events":
            by_kind.setdefault((resource.group, resource.plural), resource)
    return by_kind.values()


class _Look:
    """Keeps of each object only who owns it."""

    def __init__(
        self, api: Api, namespace: str | None, *, everything: bool, progress: Progress | None
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._everything = everything
        self._progress = progress
        self._found: list[Owned] = []
        self.unseen: list[str] = []

    async def at(self, types: Iterable[Resource]) -> None:
        room = asyncio.Semaphore(_TOGETHER)

        async def list_one(resource: Resource) -> None:
            async with room:
                try:
                    await self._list(resource)
                except KvestigateError:
                    self.unseen.append(resource.qualified)

        await asyncio.gather(*(list_one(resource) for resource in types))

    async def _list(self, resource: Resource) -> None:
        seen = 0
        pages = self._api.pages(
            resource, Selection(self._namespace), type=PartialObject, metadata_only=True
        )
        async for page in pages:
            seen += len(page.items)
            for dependent in page.items:
                owners = frozenset(owner.uid for owner in dependent.metadata.owner_references)
                if owners or self._everything:
                    self._found.append(Owned(dependent.metadata.uid, resource.qualified, owners))
            if self._progress is not None:
                self._progress(resource.plural, seen)

    def doomed_with(self, uid: str) -> dict[str, int]:
        if self._everything:
            return _counted(self._found)
        return _counted(doomed(uid, self._found))


def doomed(uid: str, owned: Iterable[Owned]) -> list[Owned]:
    """Those that have no owner left once `uid` is gone, and those that then have none left."""
    gone = {uid}
    waiting = list(owned)
    doomed: list[Owned] = []
    while True:
        going = [owned for owned in waiting if owned.owners <= gone]
        if not going:
            return doomed
        doomed += going
        gone |= {owned.uid for owned in going}
        waiting = [owned for owned in waiting if owned.uid not in gone]


def _counted(objects: Iterable[Owned]) -> dict[str, int]:
    return dict(sorted(Counter(owned.type for owned in objects).items()))
