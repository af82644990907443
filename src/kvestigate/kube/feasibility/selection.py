"""Selectors of pod specs, compiled: node terms, and affinity to other pods. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.kube.selectors import LabelSelector, Operator, Requirement
from kvestigate.kube.views import meta
from kvestigate.kube.views.placement import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinityTerm,
)

Labels = Mapping[str, str]
NodeTest = Callable[[str, Labels], bool]
"""Of a node's name and labels."""

_NAME = "metadata.name"


def label_selector(selector: meta.LabelSelector | None) -> LabelSelector:
    """The compiled selector; one that does not parse selects nothing."""
    if selector is None:
        return selectors.NOTHING
    expressions = [
        {"key": item.key, "operator": item.operator, "values": item.values}
        for item in selector.match_expressions
    ]
    try:
        return selectors.from_label_selector(
            {"matchLabels": selector.match_labels, "matchExpressions": expressions}
        )
    except InputError:
        return selectors.NOTHING


def with_label_keys(
    selector: LabelSelector, labels: Labels, same: Iterable[str], other: Iterable[str] = ()
) -> LabelSelector:
    """Narrowed to pods that share the `same` labels of a pod and differ in the `other` ones."""
    if selector.selects_nothing:
        return selector
    more = [Requirement(key, Operator.IN, (labels[key],)) for key in same if key in labels]
    more += [Requirement(key, Operator.NOT_IN, (labels[key],)) for key in other if key in labels]
    return LabelSelector((*selector.requirements, *more)) if more else selector


# -- nodes -----------------------------------------------------------------------------------


def node_term(term: NodeSelectorTerm) -> NodeTest:
    """One term of a node selector; without requirements it selects no node."""
    if not (term.match_expressions or term.match_fields):
        return _no_node
    try:
        matches = selectors.from_node_expressions(
            {"key": item.key, "operator": item.operator, "values": item.values}
            for item in term.match_expressions
        ).matches
    except InputError:
        return _no_node
    fields = term.match_fields
    if not fields:
        return lambda name, labels: matches(labels)
    return lambda name, labels: matches(labels) and all(_names(item, name) for item in fields)


def node_selector(selector: NodeSelector) -> NodeTest:
    tests = [node_term(term) for term in selector.node_selector_terms]
    if len(tests) == 1:
        return tests[0]
    return lambda name, labels: any(test(name, labels) for test in tests)


def required_nodes(wanted: Labels, affinity: Affinity | None) -> NodeTest | None:
    """What `nodeSelector` and required node affinity ask for together; None for nothing."""
    tests: list[NodeTest] = []
    if wanted:
        pairs = wanted.items()
        tests.append(lambda name, labels: pairs <= labels.items())
    node_affinity = affinity.node_affinity if affinity else None
    if node_affinity and node_affinity.required is not None:
        tests.append(node_selector(node_affinity.required))
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda name, labels: all(test(name, labels) for test in tests)


def named_nodes(affinity: Affinity | None) -> frozenset[str] | None:
    """The nodes that every required term names, as for pods of daemon sets; None for any node."""
    node_affinity = affinity.node_affinity if affinity else None
    if not node_affinity or node_affinity.required is None:
        return None
    terms = node_affinity.required.node_selector_terms
    names: set[str] = set()
    for term in terms:
        named = [
            set(item.values)
            for item in term.match_fields
            if item.key == _NAME and item.operator == "In"
        ]
        if not named:
            return None
        names |= set.intersection(*named)
    return frozenset(names) if terms else None


def _names(item: NodeSelectorRequirement, name: str) -> bool:
    if item.key != _NAME or len(item.values) != 1:
        return False
    return {"In": name in item.values, "NotIn": name not in item.values}.get(item.operator, False)


def _no_node(name: str, labels: Labels) -> bool:
    return False


# -- other pods ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """One affinity or anti-affinity term; equal terms of many pods are one value."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector = selectors.NOTHING
    weight: int = 0
    """Of preferred terms, negative for repulsion."""
    matches: Callable[[Labels], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", self.selector.matches)

    def covers(self, namespace: str, labels: Labels) -> bool:
        """Whether the term selects pods of the namespace, which has these labels."""
        return namespace in self.namespaces or self.namespace_selector.matches(labels)


def pod_term(term: PodAffinityTerm, namespace: str, labels: Labels, weight: int = 0) -> Term:
    """The term of a pod with these labels in that namespace."""
    selector = label_selector(term.label_selector)
    selector = with_label_keys(selector, labels, term.match_label_keys, term.mismatch_label_keys)
    own = not term.namespaces and term.namespace_selector is None
    return Term(
        term.topology_key,
        selector,
        frozenset((namespace,) if own else term.namespaces),
        label_selector(term.namespace_selector),
        weight,
    )
