"""Counts of placed pods by labels, affinity terms and controllers. Pure.

Thousands of pods come from few templates: they share their labels and their affinity terms.
What is kept is one entry for each distinct one, with where its pods are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import Labels, Term

Topology = tuple[str, str]
"""A label of nodes and its value: a zone, a host."""


@dataclass(slots=True)
class Alike:
    """Pods of one namespace with the same labels."""

    labels: Labels
    terminating: bool
    nodes: dict[str, int] = field(default_factory=dict)
    """How many of them are where, by node name."""


class PodsByLabels:
    """Placed pods, by namespace and labels."""

    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[bool, frozenset[tuple[str, str]]], Alike]] = {}

    def add(self, pod: PodFacts, node: str) -> None:
        alike = self._found.setdefault(pod.key.namespace, {})
        key = (pod.terminating, frozenset(pod.labels.items()))
        entry = alike.get(key)
        if entry is None:
            entry = alike[key] = Alike(pod.labels, pod.terminating)
        entry.nodes[node] = entry.nodes.get(node, 0) + 1

    def remove(self, pod: PodFacts, node: str) -> None:
        alike = self._found[pod.key.namespace]
        key = (pod.terminating, frozenset(pod.labels.items()))
        entry = alike[key]
        entry.nodes[node] -= 1
        if not entry.nodes[node]:
            del entry.nodes[node]
            if not entry.nodes:
                del alike[key]

    def namespaces(self) -> list[str]:
        return list(self._found)

    def of(self, namespace: str) -> Iterator[Alike]:
        return iter(self._found.get(namespace, {}).values())

    def by_node(self, namespace: str, matches: Callable[[Labels], bool]) -> dict[str, int]:
        """How many matching pods each node has, without those being deleted."""
        counts: dict[str, int] = {}
        for alike in self.of(namespace):
            if not alike.terminating and matches(alike.labels):
                for node, count in alike.nodes.items():
                    counts[node] = counts.get(node, 0) + count
        return counts


class TermsByTopology:
    """Terms of placed pods, with how many of the pods are in which topology."""

    def __init__(self) -> None:
        self._found: dict[Term, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, term: Term, labels: Labels) -> None:
        value = labels.get(term.topology_key)
        if value is not None:
            counts = self._found.setdefault(term, {})
            counts[value] = counts.get(value, 0) + 1

    def remove(self, term: Term, labels: Labels) -> None:
        value = labels.get(term.topology_key)
        if value is not None:
            counts = self._found[term]
            counts[value] -= 1
            if not counts[value]:
                del counts[value]
                if not counts:
                    del self._found[term]

    def about(
        self, pod: PodFacts, namespace_labels: Labels
    ) -> Iterator[tuple[Term, dict[str, int]]]:
        """The terms that select this pod, with how many pods have each, by topology value."""
        for term, counts in self._found.items():
            if term.covers(pod.key.namespace, namespace_labels) and term.matches(pod.labels):
                yield term, counts


class Families:
    """How many pods of each controller are on each node, without those being deleted."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, int]] = {}

    def add(self, pod: PodFacts, node: str) -> None:
        if pod.family and not pod.terminating:
            counts = self._found.setdefault(pod.family, {})
            counts[node] = counts.get(node, 0) + 1

    def remove(self, pod: PodFacts, node: str) -> None:
        if pod.family and not pod.terminating:
            counts = self._found[pod.family]
            counts[node] -= 1
            if not counts[node]:
                del counts[node]
                if not counts:
                    del self._found[pod.family]

    def of(self, pod: PodFacts) -> dict[str, int]:
        """Placed pods of the same controller, by node name."""
        return self._found.get(pod.family, {})
