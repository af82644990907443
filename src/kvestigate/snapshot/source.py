"""The sources of a snapshot: lists of objects, and metrics of the API server."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import ApiError, NotFound, Unauthorized
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.snapshot.administration import (
    CustomObject,
    Definition,
    UncheckedObject,
    as_custom_object,
)
from kvestigate.snapshot.gaps import Gap, cause_of, truncated
from kvestigate.snapshot.prometheus import Sample, samples

T = TypeVar("T")
Read = TypeVar("Read", covariant=True)
"""What a source yields: a list of nodes with more fields is a list of nodes."""

# Few responses of a few megabytes each.
_PAGE_SIZE = 1000

_MOST_OF_A_KIND = 500
"""A thousand broken objects of one kind have one cause."""

_TOGETHER = 4
"""How many kinds of custom resources are listed at a time."""

# A large API server exposes megabytes of metrics.
_PATIENCE = 30.0


class Progress(Protocol):
    def __call__(self, name: str, count: int, total: int = 0, /) -> None:
        """`count` items of a source have been read, of `total`; 0 if the total is unknown."""


Condense = Callable[[T], T]


@dataclass(frozen=True, slots=True)
class Reading(Generic[Read]):
    """What a source yields, and the parts of it that could not be read."""

    items: tuple[Read, ...]
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Source(ABC, Generic[Read]):
    """Something that a snapshot reads once, as a sequence of `Read`."""

    @property
    @abstractmethod
    def verb(self) -> str:
        """The verb that RBAC must allow: `list`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """`pods`, `nodes.metrics.k8s.io`, `/metrics`"""

    @property
    def absent_means_none(self) -> bool:
        """Whether a server that does not serve this type has no objects of it."""
        return False

    @abstractmethod
    async def read(self, api: Api, namespace: str, progress: Progress | None) -> Reading[Read]:
        """All items; with `namespace`, only those of it and those without a namespace."""


@dataclass(frozen=True, slots=True)
class Listing(Source[Read]):
    """All objects of a resource, decoded as `type`."""

    resource: Resource
    type: type[Read]
    fields: str = ""
    """A field selector that the server applies: `type=kubernetes.io/tls`."""
    metadata_only: bool = False
    condense: Callable[[], Condense[Read]] | None = None
    """Creates a function that reduces each object of one list to the needed fields."""
    most: int = 0
    """Stop after the page with this many objects; 0: read all."""

    @property
    def verb(self) -> str:
        return "list"

    @property
    def name(self) -> str:
        return self.resource.qualified

    @property
    def absent_means_none(self) -> bool:
        """Not of measurements: what nobody measures is there all the same."""
        return self.resource.group != builtins.POD_METRICS.group

    async def read(self, api: Api, namespace: str, progress: Progress | None) -> Reading[Read]:
        within = namespace if namespace and self.resource.namespaced else None
        condense = self.condense() if self.condense is not None else None
        items: list[Read] = []
        gaps: tuple[Gap, ...] = ()
        pages = api.pages(
            self.resource,
            Selection(within, fields=self.fields),
            type=self.type,
            limit=min(self.most or _PAGE_SIZE, _PAGE_SIZE),
            metadata_only=self.metadata_only,
        )
        try:
            async for page in pages:
                items += page.items if condense is None else map(condense, page.items)
                if progress is not None:
                    left = page.metadata.remaining_item_count or 0
                    progress(self.name, len(items), len(items) + left)
                if self.most and len(items) >= self.most:
                    meta = page.metadata
                    if meta.continue_:
                        remaining = meta.remaining_item_count
                        gaps = (truncated(self.verb, self.name, len(items), remaining),)
                    break
        finally:
            await pages.aclose()
        return Reading(tuple(items), gaps)


@dataclass(frozen=True, slots=True)
class CustomObjects(Source[CustomObject]):
    """The objects of custom resources, a bounded number of each kind, seen by their conditions."""

    @property
    def verb(self) -> str:
        return "list"

    @property
    def name(self) -> str:
        return "custom resources"

    async def read(
        self, api: Api, namespace: str, progress: Progress | None
    ) -> Reading[CustomObject]:
        definitions = Listing(builtins.resource("customresourcedefinitions"), Definition)
        resources = [
            resource
            for definition in (await definitions.read(api, namespace, None)).items
            if (resource := _served(definition)) is not None
        ]
        room = asyncio.Semaphore(_TOGETHER)

        async def objects(resource: Resource) -> Reading[CustomObject]:
            async with room:
                return await _objects(api, resource, namespace)

        per_resource = await asyncio.gather(*map(objects, resources))
        return Reading(
            tuple(item for reading in per_resource for item in reading.items),
            tuple(gap for reading in per_resource for gap in reading.gaps),
        )


async def _objects(api: Api, resource: Resource, namespace: str) -> Reading[CustomObject]:
    """The objects of one kind; a kind that cannot be listed is a gap beside the other kinds."""
    listing = Listing(resource, UncheckedObject, most=_MOST_OF_A_KIND)
    try:
        reading = await listing.read(api, namespace, None)
    except Unauthorized:
        raise
    except NotFound:
        return Reading(())  # its definition says why the kind is not served
    except ApiError as error:
        return Reading((), (Gap(listing.verb, listing.name, cause_of(error), error.message),))
    return Reading(tuple(map(as_custom_object, reading.items)), reading.gaps)


def _served(definition: Definition) -> Resource | None:
    """The resource that a definition offers, in the version that is stored if that is served."""
    spec = definition.spec
    served = [version for version in spec.versions if version.served]
    if not served:
        return None
    version = next((version for version in served if version.storage), served[0])
    return Resource(
        spec.group,
        version.name,
        spec.names.plural,
        spec.names.kind,
        namespaced=spec.scope == "Namespaced",
        verbs=("get", "list"),
    )


@dataclass(frozen=True, slots=True)
class MetricSamples(Source[Sample]):
    """The samples of one metric of the API server."""

    metric: str
    path: str = "/metrics"

    @property
    def verb(self) -> str:
        return "get"

    @property
    def name(self) -> str:
        return self.path

    async def read(self, api: Api, namespace: str, progress: Progress | None) -> Reading[Sample]:
        exposed = await api.request("GET", self.path, accept="text/plain", timeout=_PATIENCE)
        return Reading(tuple(samples(exposed, self.metric)))


class ApiVersion(msgspec.Struct, frozen=True, rename="camel"):
    git_version: str = ""
    """`v1.36.4`"""


@dataclass(frozen=True, slots=True)
class ServerVersion(Source[ApiVersion]):
    """The version of the API server: one item, or none if the answer is not a version."""

    @property
    def verb(self) -> str:
        return "get"

    @property
    def name(self) -> str:
        return "/version"

    async def read(
        self, api: Api, namespace: str, progress: Progress | None
    ) -> Reading[ApiVersion]:
        answer = await api.request("GET", "/version")
        try:
            return Reading((msgspec.json.decode(answer, type=ApiVersion),))
        except msgspec.DecodeError:
            return Reading(())
