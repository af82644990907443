"""Counts of placed pods by labels, affinity terms and controllers. Pure.

Thousands of pods come from few templates: they share their labels and their affinity terms.
What is kept is one entry for each distinct one, with where its pods are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, ItemsView
from typing import Generic, TypeVar

from kvestigate.kube.feasibility.pods import Alike
from kvestigate.kube.node_selection import Labels

K = TypeVar("K", bound=Hashable)


class Counted(Generic[K]):
    """How many pods each key has in each place: on a node, in a zone."""

    def __init__(self) -> None:
        self._counts: dict[K, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, key: K, place: str, number: int) -> None:
        """`number` is 1 for a pod that comes and -1 for one that goes."""
        counts = self._counts.setdefault(key, {})
        counts[place] = counts.get(place, 0) + number
        if not counts[place]:
            del counts[place]
            if not counts:
                del self._counts[key]

    def of(self, key: K) -> dict[str, int]:
        return self._counts.get(key, {})

    def items(self) -> ItemsView[K, dict[str, int]]:
        return self._counts.items()


def by_node(
    placed: Counted[Alike], namespace: str, matches: Callable[[Labels], bool]
) -> dict[str, int]:
    """How many matching pods of a namespace each node has, without those being deleted."""
    totals: dict[str, int] = {}
    for alike, counts in placed.items():
        if alike.namespace == namespace and not alike.terminating and matches(alike.labels):
            for node, count in counts.items():
                totals[node] = totals.get(node, 0) + count
    return totals
