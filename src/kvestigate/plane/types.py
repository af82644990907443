"""The kinds that a plane serves: the built-in ones and its custom resources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from kvestigate.plane.kinds.kind import Kind
from kvestigate.plane.kinds.registry import builtin
from kvestigate.plane.store.state import PlaneState


class Types:
    """What can be addressed in a plane, by (group, version, plural)."""

    def __init__(self, kinds: dict[tuple[str, str, str], Kind]) -> None:
        self._kinds = kinds

    def get(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())


@cache
def _builtin() -> Types:
    return Types(builtin())


def of(state: PlaneState) -> Types:
    """The types of a plane at one revision."""
    return _builtin()
