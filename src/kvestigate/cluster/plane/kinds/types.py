"""The kinds that a plane serves: the built-in ones and its custom resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from weakref import WeakKeyDictionary

from kvestigate.cluster.plane.kinds.custom.definitions import Kinds, kinds_of, priority
from kvestigate.cluster.plane.kinds.custom.kind import DEFINITIONS
from kvestigate.cluster.plane.kinds.registry import builtin
from kvestigate.cluster.plane.model.kind import Kind
from kvestigate.cluster.plane.store.state import Collection, PlaneState


class Types:
    """What can be addressed in a plane, by (group, version, plural).

    In order of preference: built-in groups, then custom groups by name, their versions newest
    first.
    """

    def __init__(self, kinds: dict[tuple[str, str, str], Kind]) -> None:
        self._kinds = kinds

    def get(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def extended(self, kinds: Iterable[Kind]) -> Types:
        """These types plus more kinds; kinds that are already known win."""
        added = {
            (kind.resource.group, kind.resource.version, kind.resource.plural): kind
            for kind in kinds
        }
        return Types({**self._kinds, **{at: added[at] for at in added if at not in self._kinds}})


@cache
def _builtin() -> Types:
    return Types(builtin())


_COMMON = (
    ("", "v1", "configmaps"),
    ("", "v1", "pods"),
    ("", "v1", "services"),
    ("apps", "v1", "deployments"),
)


def prepare() -> None:
    """Compile what objects of common kinds are checked with: the first would wait 30 ms for it."""
    for at in _COMMON:
        kind = builtin()[at]
        kind.tidied({})
        kind.problems({})


_known: WeakKeyDictionary[Collection, Types] = WeakKeyDictionary()


def of(state: PlaneState) -> Types:
    """The types of a plane at one revision: one value for all that define the same."""
    definitions = state.collections.get(DEFINITIONS)
    if definitions is None:
        return _builtin()
    types = _known.get(definitions)
    if types is None:
        types = _with(tuple(filter(None, map(kinds_of, definitions.items()))))
        _known[definitions] = types
    return types


@lru_cache(maxsize=1024)
def _with(custom: tuple[Kinds, ...]) -> Types:
    if not custom:
        return _builtin()
    kinds = sorted(
        (kind for some in custom for kind in some),
        key=lambda kind: (kind.resource.group, priority(kind.resource.version)),
    )
    # A built-in kind cannot be redefined.
    added: dict[tuple[str, str, str], Kind] = {
        (kind.resource.group, kind.resource.version, kind.resource.plural): kind for kind in kinds
    }
    return Types({**builtin(), **{at: added[at] for at in added if at not in builtin()}})
