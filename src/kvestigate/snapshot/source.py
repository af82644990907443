"""The sources of a snapshot: lists of objects, and metrics of the API server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.kube.resources import Resource
from kvestigate.snapshot.prometheus import Sample, samples

T = TypeVar("T")

# Few responses of a few megabytes each.
_PAGE_SIZE = 1000

# A large API server exposes megabytes of metrics.
_PATIENCE = 30.0


class Progress(Protocol):
    def __call__(self, name: str, count: int, total: int = 0, /) -> None:
        """`count` items of a source have been read, of `total`; 0 if the total is unknown."""


Condense = Callable[[T], T]


@dataclass(frozen=True, slots=True)
class Source(ABC, Generic[T]):
    """Something that a snapshot reads once, as a sequence of `T`."""

    @property
    @abstractmethod
    def verb(self) -> str:
        """The verb that RBAC must allow: `list`."""

    @property
    @abstractmethod
    def name(self) -> str:
        """`pods`, `nodes.metrics.k8s.io`, `/metrics`"""

    @abstractmethod
    async def read(self, api: Api, namespace: str, progress: Progress | None) -> tuple[T, ...]:
        """All items; with `namespace`, only those of it and those without a namespace."""


@dataclass(frozen=True, slots=True)
class Listing(Source[T]):
    """All objects of a resource, decoded as `type`."""

    resource: Resource
    type: type[T]
    fields: str = ""
    """A field selector that the server applies: `type=kubernetes.io/tls`."""
    metadata_only: bool = False
    condense: Callable[[], Condense[T]] | None = None
    """Creates a function that reduces each object of one list to the needed fields."""

    @property
    def verb(self) -> str:
        return "list"

    @property
    def name(self) -> str:
        return self.resource.qualified

    async def read(self, api: Api, namespace: str, progress: Progress | None) -> tuple[T, ...]:
        within = namespace if namespace and self.resource.namespaced else None
        condense = self.condense() if self.condense is not None else None
        items: list[T] = []
        pages = api.pages(
            self.resource,
            Selection(within, fields=self.fields),
            type=self.type,
            limit=_PAGE_SIZE,
            metadata_only=self.metadata_only,
        )
        try:
            async for page in pages:
                items += page.items if condense is None else map(condense, page.items)
                if progress is not None:
                    left = page.metadata.remaining_item_count or 0
                    progress(self.name, len(items), len(items) + left)
        finally:
            await pages.aclose()
        return tuple(items)


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

    async def read(self, api: Api, namespace: str, progress: Progress | None) -> tuple[Sample, ...]:
        exposed = await api.request("GET", self.path, accept="text/plain", timeout=_PATIENCE)
        return tuple(samples(exposed, self.metric))
