"""Which resources a server has, and which one a word of the user means.

Built-in words need no request. For the rest the server is asked once: with aggregated
discovery two requests tell all; older servers are asked group by group.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from kvestigate import errors
from kvestigate.aio.groups import one_failure
from kvestigate.client.api import Api
from kvestigate.kube import builtins
from kvestigate.kube.decode import decode
from kvestigate.kube.resources import Registry, Resource

_AGGREGATED = ",".join(
    (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        "application/json",
    )
)

# Group versions asked for at the same time on servers without aggregated discovery.
_TOGETHER = 8

S = TypeVar("S", bound="_Answer")


class _Answer(msgspec.Struct, rename="camel"):
    """The base of discovery's answers."""


class _Kind(_Answer):
    kind: str = ""


class _Subresource(_Answer):
    subresource: str


class _Resource(_Answer):
    resource: str
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[_Subresource, ...] = ()


class _Version(_Answer):
    version: str
    resources: tuple[_Resource, ...] = ()


class _Name(_Answer):
    name: str = ""


class _Group(_Answer):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: tuple[_Version, ...] = ()


class _LegacyVersion(_Answer):
    group_version: str
    version: str


class _LegacyGroup(_Answer):
    name: str
    versions: tuple[_LegacyVersion, ...] = ()
    preferred_version: _LegacyVersion | None = None


class _Roots(_Answer):
    """`/api` or `/apis`, whichever of the three shapes the server speaks."""

    kind: str = ""
    items: tuple[_Group, ...] = ()
    groups: tuple[_LegacyGroup, ...] = ()
    versions: tuple[str, ...] = ()


class _LegacyResource(_Answer):
    name: str
    kind: str = ""
    namespaced: bool = False
    singular_name: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()


class _LegacyResources(_Answer):
    resources: tuple[_LegacyResource, ...] = ()


class Discovery:
    """The resources of one server, asked for when first needed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = asyncio.Lock()
        self._registry: Registry | None = None
        self.unavailable: list[str] = []
        """Group versions that did not answer, usually those of an aggregated server."""

    async def resolve(self, word: str) -> Resource:
        """The resource that `po`, `deploy.apps` or `widgets` means, or `UsageError` with a hint."""
        try:
            return builtins.resource(word)
        except errors.UsageError:
            return (await self.registry()).find(word)[0]

    async def registry(self) -> Registry:
        """All that the server has, the preferred group and version first."""
        async with self._lock:
            if self._registry is None:
                self._registry = Registry(await self._discover())
            return self._registry

    def forget(self) -> None:
        """Ask again next time: a type was just added."""
        self._registry = None

    async def _discover(self) -> list[Resource]:
        self.unavailable = []
        resources: list[Resource] = []
        for path in ("/api", "/apis"):
            root = await self._ask(path, _Roots, _AGGREGATED)
            if root.kind == "APIGroupDiscoveryList":
                resources += _aggregated(root.items)
            else:
                resources += await self._legacy(root)
        return resources

    async def _legacy(self, root: _Roots) -> list[Resource]:
        limit = asyncio.Semaphore(_TOGETHER)

        async def ask(group: str, version: str) -> list[Resource]:
            path = f"/apis/{group}/{version}" if group else f"/api/{version}"
            async with limit:
                try:
                    answer = await self._ask(path, _LegacyResources)
                except errors.ApiError:
                    self.unavailable.append(f"{group}/{version}" if group else version)
                    return []
            return list(_listed(group, version, answer.resources))

        with one_failure():
            async with asyncio.TaskGroup() as tasks:
                lists = [tasks.create_task(ask(*version)) for version in _versions(root)]
        return [resource for task in lists for resource in task.result()]

    async def _ask(self, path: str, type: type[S], accept: str = "application/json") -> S:
        return decode(await self._api.request("GET", path, accept=accept), type, where=path)


def _versions(root: _Roots) -> Iterator[tuple[str, str]]:
    for version in root.versions:
        yield "", version
    for group in root.groups:
        preferred = group.preferred_version.version if group.preferred_version else ""
        for served in sorted(group.versions, key=lambda entry: entry.version != preferred):
            yield group.name, served.version


def _aggregated(groups: Iterable[_Group]) -> Iterator[Resource]:
    for group in groups:
        for version in group.versions:
            for resource in version.resources:
                if resource.response_kind is not None:
                    yield Resource(
                        group=group.metadata.name,
                        version=version.version,
                        plural=resource.resource,
                        kind=resource.response_kind.kind,
                        namespaced=resource.scope == "Namespaced",
                        singular=resource.singular_resource,
                        short_names=resource.short_names,
                        categories=resource.categories,
                        verbs=resource.verbs,
                        subresources=tuple(part.subresource for part in resource.subresources),
                    )


def _listed(group: str, version: str, resources: Iterable[_LegacyResource]) -> Iterator[Resource]:
    """A flat list in which `pods/log` stands beside `pods`."""
    below: dict[str, list[str]] = {}
    for resource in resources:
        plural, slash, subresource = resource.name.partition("/")
        if slash:
            below.setdefault(plural, []).append(subresource)
    for resource in resources:
        if "/" not in resource.name:
            yield Resource(
                group=group,
                version=version,
                plural=resource.name,
                kind=resource.kind,
                namespaced=resource.namespaced,
                singular=resource.singular_name,
                short_names=resource.short_names,
                categories=resource.categories,
                verbs=resource.verbs,
                subresources=tuple(below.get(resource.name, ())),
            )
