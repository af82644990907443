"""Whether a pod may be on a node at all: selectors, affinity, taints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from kvestigate.kube import selectors
from kvestigate.kube.views.core import Node, Taint
from kvestigate.kube.views.placement import Affinity, NodeSelectorTerm, Toleration


class Placed(Protocol):
    """The fields of a pod spec that say where a pod may be."""

    @property
    def node_name(self) -> str: ...
    @property
    def node_selector(self) -> dict[str, str]: ...
    @property
    def affinity(self) -> Affinity | None: ...


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def untolerated(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], effects: Sequence[str]
) -> list[Taint]:
    return [
        taint
        for taint in taints
        if taint.effect in effects
        and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]


def matches_node(spec: Placed, node: Node) -> bool:
    """Whether name, node selector and required affinity let a pod onto a node."""
    if spec.node_name and spec.node_name != node.metadata.name:
        return False
    if not spec.node_selector.items() <= node.metadata.labels.items():
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(matches_term(term, node) for term in affinity.required.node_selector_terms)


def matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    expressions = selectors.from_node_expressions(map(_plain, term.match_expressions))
    fields = selectors.from_node_expressions(map(_plain, term.match_fields))
    named = {"metadata.name": node.metadata.name}
    return expressions.matches(node.metadata.labels) and fields.matches(named)


def _plain(requirement: Any) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(requirement)
    return found
