"""Selectors of pods, compiled: by labels, and affinity to other pods. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.kube.node_selection import Labels
from kvestigate.kube.selectors import LabelSelector, Operator, Requirement
from kvestigate.kube.views import meta
from kvestigate.kube.views.placement import PodAffinityTerm


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
