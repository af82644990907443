"""Selectors of nodes, compiled: by labels and by name. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.kube.views.placement import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

Labels = Mapping[str, str]
NodeTest = Callable[[str, Labels], bool]
"""Of a node's name and labels."""

_NAME = "metadata.name"


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
