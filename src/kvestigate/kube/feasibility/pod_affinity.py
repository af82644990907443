"""Pods that must be near other pods or far from them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvestigate.kube.feasibility.framework import Judge, Rejection
from kvestigate.kube.feasibility.indexes import Counted
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pods import Alike, PodFacts
from kvestigate.kube.feasibility.selection import Term
from kvestigate.kube.feasibility.state import ClusterState

Counts = dict[tuple[str, str], int]
"""Pods by topology: a label of nodes and its value, such as a zone."""


class InterPodAffinity:
    name = "InterPodAffinity"
    _unattracted = Rejection(name, ("node(s) didn't match pod affinity rules",), False)
    _repelled = Rejection(name, ("node(s) didn't match pod anti-affinity rules",))
    _unwelcome = Rejection(name, ("node(s) didn't satisfy existing pods anti-affinity rules",))

    def judge(self, pod: PodFacts, state: ClusterState) -> Judge | None:
        unwelcome = _unwelcome_in(pod, state)
        if pod.pod.spec.affinity is None or not (pod.affinity or pod.anti_affinity):
            return self._judge_unwelcome(unwelcome) if unwelcome else None
        near = _near(pod.affinity, state)
        far = weighed([(term, 1) for term in pod.anti_affinity], state)
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


def about(
    pod: PodFacts, terms: Counted[Term], state: ClusterState
) -> Iterator[tuple[Term, dict[str, int]]]:
    """The terms of placed pods that select this pod, with how many pods have each, by topology."""
    labels = state.namespace_labels(pod.key.namespace)
    for term, counts in terms.items():
        if term.covers(pod.key.namespace, labels) and term.matches(pod.labels):
            yield term, counts


def _unwelcome_in(pod: PodFacts, state: ClusterState) -> Counts:
    """Topologies with a pod whose anti-affinity selects this pod."""
    return {
        (term.topology_key, value): count
        for term, counts in about(pod, state.repulsions, state)
        for value, count in counts.items()
    }


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
    for alike, nodes in state.placed.items():
        if terms and all(_selects(term, alike, state) for term in terms):
            for term in terms:
                _count(totals, term, nodes, state, 1)
    return totals


def weighed(terms: Iterable[tuple[Term, int]], state: ClusterState) -> Counts:
    """Topologies with pods that at least one term selects, each pod with the term's weight."""
    totals: Counts = {}
    for term, weight in terms:
        for alike, nodes in state.placed.items():
            if _selects(term, alike, state):
                _count(totals, term, nodes, state, weight)
    return totals


def _selects(term: Term, alike: Alike, state: ClusterState) -> bool:
    labels = state.namespace_labels(alike.namespace)
    return term.covers(alike.namespace, labels) and term.matches(alike.labels)


def _count(
    totals: Counts, term: Term, nodes: dict[str, int], state: ClusterState, weight: int
) -> None:
    key = term.topology_key
    for name, count in nodes.items():
        value = state.nodes[name].labels.get(key)
        if value is not None:
            totals[key, value] = totals.get((key, value), 0) + count * weight


def _means_itself(pod: PodFacts, state: ClusterState) -> bool:
    return all(_selects(term, pod.alike, state) for term in pod.affinity)
