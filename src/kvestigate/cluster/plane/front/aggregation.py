"""Aggregated APIs: kinds whose objects are not in the plane's store, `metrics.k8s.io` for example.

The code that assembles a server registers them. A plane serves them while it has their
APIService, behind the same authentication and authorization as everything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kvestigate.cluster.plane.kinds import types
from kvestigate.cluster.plane.kinds.types import Types
from kvestigate.cluster.plane.model import plane_paths
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.verbs.subresources.registry import Verbs

API_SERVICES = ("apiregistration.k8s.io", "apiservices")


@dataclass(frozen=True, slots=True, eq=False)
class Aggregated:
    """One kind of an aggregated API."""

    kind: Kind
    verbs: Verbs
    plane: str = plane_paths.ROOT
    """The only plane that serves it."""

    @property
    def service(self) -> str:
        """The name of its APIService: `v1beta1.metrics.k8s.io`."""
        return f"{self.kind.resource.version}.{self.kind.resource.group}"


class Aggregation:
    """The aggregated kinds of a server."""

    def __init__(self) -> None:
        self._served: list[Aggregated] = []
        self._extended: WeakKeyDictionary[Types, dict[tuple[Aggregated, ...], Types]]
        self._extended = WeakKeyDictionary()
        """Discovery and OpenAPI documents are kept by Types, so equal ones must be the same."""

    def serve(self, added: Iterable[Aggregated]) -> None:
        self._served += added

    def verbs_of(self, kind: Kind) -> Verbs | None:
        """The verbs of an aggregated kind; None for kinds in the plane's store."""
        return next((served.verbs for served in self._served if served.kind is kind), None)

    def types(self, plane: Plane) -> Types:
        """The types of the plane, followed by those of its aggregated APIs."""
        own = types.of(plane.state)
        aggregated = tuple(
            served
            for served in self._served
            if served.plane == plane.name
            and plane.state.get(API_SERVICES, "", served.service) is not None
        )
        if not aggregated:
            return own
        extended = self._extended.setdefault(own, {})
        if aggregated not in extended:
            extended[aggregated] = own.extended(served.kind for served in aggregated)
        return extended[aggregated]
