"""Pods that must, or would like to, be near other pods or far from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvestigate.cluster.scheduler.framework import MAX_SCORE, Grade, Judge, Rejection
from kvestigate.cluster.scheduler.indexes import Alike, Topology
from kvestigate.cluster.scheduler.nodes import NodeState
from kvestigate.cluster.scheduler.pods import PodFacts
from kvestigate.cluster.scheduler.selection import Term
from kvestigate.cluster.scheduler.state import ClusterState

Counts = dict[Topology, int]


class InterPodAffinity:
    name = "InterPodAffinity"
    local = False
    _unattracted = Rejection(name, ("node(s) didn't match pod affinity rules",), False)
    _repelled = Rejection(name, ("node(s) didn't match pod anti-affinity rules",))
    _unwelcome = Rejection(name, ("node(s) didn't satisfy existing pods anti-affinity rules",))

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        unwelcome = _unwelcome_in(pod, state)
        if pod.pod.spec.affinity is None or not (pod.affinity or pod.anti_affinity):
            return self._judge_unwelcome(unwelcome) if unwelcome else None
        near = _near(pod.affinity, state)
        far = _far(pod.anti_affinity, state)
        # The first of pods that are drawn to each other has to start somewhere.
        first = not near and bool(pod.affinity) and _means_itself(pod, state)

        def judge(node: NodeState) -> Rejection | None:
            if not _attracted(node, pod.affinity, near, first):
                return self._unattracted
            for term in pod.anti_affinity:
                if far.get((term.topology_key, node.labels.get(term.topology_key, ""))):
                    return self._repelled
            return self._unwelcome if _any_of(node, unwelcome) else None

        return judge

    def _judge_unwelcome(self, unwelcome: Counts) -> Judge:
        return lambda node: self._unwelcome if _any_of(node, unwelcome) else None


def _unwelcome_in(pod: PodFacts, state: ClusterState) -> Counts:
    """Topologies with a pod whose anti-affinity selects this pod."""
    totals: Counts = {}
    if state.repulsions:
        labels = state.namespace_labels(pod.key.namespace)
        for term, counts in state.repulsions.about(pod, labels):
            for value, count in counts.items():
                totals[term.topology_key, value] = count
    return totals


def _any_of(node: NodeState, topologies: Counts) -> bool:
    if not topologies:
        return False
    return any(item in topologies for item in node.labels.items())


def _attracted(node: NodeState, terms: tuple[Term, ...], near: Counts, first: bool) -> bool:
    if any(term.topology_key not in node.labels for term in terms):
        return False
    return first or all(
        (term.topology_key, node.labels[term.topology_key]) in near for term in terms
    )


def _near(terms: tuple[Term, ...], state: ClusterState) -> Counts:
    """Topologies with pods that all terms select."""
    totals: Counts = {}
    if terms:
        for namespace, alike in _candidates(terms[0], state):
            labels = state.namespace_labels(namespace)
            if all(term.covers(namespace, labels) and term.matches(alike.labels) for term in terms):
                for term in terms:
                    _count(totals, term, alike, state, 1)
    return totals


def _far(terms: tuple[Term, ...], state: ClusterState) -> Counts:
    """Topologies with pods that at least one term selects."""
    totals: Counts = {}
    for term in terms:
        for _, alike in _candidates(term, state):
            if term.matches(alike.labels):
                _count(totals, term, alike, state, 1)
    return totals


def _candidates(term: Term, state: ClusterState) -> Iterator[tuple[str, Alike]]:
    for namespace in state.placed.namespaces():
        if term.covers(namespace, state.namespace_labels(namespace)):
            for alike in state.placed.of(namespace):
                yield namespace, alike


def _count(totals: Counts, term: Term, alike: Alike, state: ClusterState, weight: int) -> None:
    key = term.topology_key
    for name, count in alike.nodes.items():
        value = state.nodes[name].labels.get(key)
        if value is not None:
            totals[key, value] = totals.get((key, value), 0) + count * weight


def _means_itself(pod: PodFacts, state: ClusterState) -> bool:
    labels = state.namespace_labels(pod.key.namespace)
    return all(
        term.covers(pod.key.namespace, labels) and term.matches(pod.labels) for term in pod.affinity
    )


class PreferredNeighbours:
    """Preferred affinity, of this pod and of placed pods towards it."""

    name = "InterPodAffinity"

    def grade(self, pod: PodFacts, state: ClusterState, nodes: Sequence[NodeState]) -> Grade | None:
        weights: Counts = {}
        if pod.pod.spec.affinity is not None:
            for term in pod.preferences:
                for _, alike in _candidates(term, state):
                    if term.matches(alike.labels):
                        _count(weights, term, alike, state, term.weight)
        if state.preferences:
            labels = state.namespace_labels(pod.key.namespace)
            for term, counts in state.preferences.about(pod, labels):
                for value, count in counts.items():
                    place = (term.topology_key, value)
                    weights[place] = weights.get(place, 0) + count * term.weight
        if not weights:
            return None
        return lambda node: sum(weights.get(item, 0) for item in node.labels.items())

    def scores(self, grades: list[int]) -> list[int]:
        least, most = min(grades), max(grades)
        if most == least:
            return [0] * len(grades)
        return [int(MAX_SCORE * ((grade - least) / (most - least))) for grade in grades]
