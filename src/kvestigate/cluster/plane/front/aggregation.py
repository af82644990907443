"""Groups whose objects something beside the plane makes up, as aggregated API servers do.

Whoever assembles a server hands them in. A plane serves them as long as it has their
APIService, behind the same authentication and authorisation as everything else.
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
    """One kind of such a group."""

    kind: Kind
    verbs: Verbs
    plane: str = plane_paths.ROOT
    """The plane that it is about; the others do not get to see it."""

    @property
    def service(self) -> str:
        """The name of its APIService."""
        return f"{self.kind.resource.version}.{self.kind.resource.group}"


class Aggregation:
    """All that was handed in."""

    def __init__(self) -> None:
        self._served: list[Aggregated] = []
        self._types: WeakKeyDictionary[Types, dict[tuple[Aggregated, ...], Types]]
        self._types = WeakKeyDictionary()

    def serve(self, added: Iterable[Aggregated]) -> None:
        self._served += added

    def verbs_of(self, kind: Kind) -> Verbs | None:
        """What answers for a kind; None if the plane does itself."""
        if not self._served:
            return None
        return next((each.verbs for each in self._served if each.kind is kind), None)

    def types(self, plane: Plane) -> Types:
        """What the plane serves itself, and then these."""
        own = types.of(plane.state)
        if not self._served:
            return own
        present = tuple(each for each in self._served if _is_on(each, plane))
        if not present:
            return own
        known = self._types.setdefault(own, {})
        if present not in known:
            known[present] = own.extended(each.kind for each in present)
        return known[present]


def _is_on(each: Aggregated, plane: Plane) -> bool:
    return each.plane == plane.name and plane.state.get(API_SERVICES, "", each.service) is not None
