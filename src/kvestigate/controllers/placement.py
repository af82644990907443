"""Whether a DaemonSet's pod belongs on a node: selectors, affinity, taints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kvestigate.kube import selectors
from kvestigate.kube.views.core import Node, Taint
from kvestigate.kube.views.placement import NodeSelectorTerm, Toleration
from kvestigate.kube.views.pods import Pod, PodSpec

DAEMON_TOLERATIONS: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What a daemon lives with: it is there to mend such nodes."""
_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


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
        if taint.effect in effects and not any(tolerates(each, taint) for each in tolerations)
    ]


def matches_node(spec: PodSpec, node: Node) -> bool:
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


def daemon_tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """A template's tolerations with those that every daemon has."""
    wanted = [*DAEMON_TOLERATIONS, *([_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    own = [each for each in spec.get("tolerations") or [] if each not in added]
    return [*own, *added]


def pinned(spec: dict[str, Any], node: str) -> dict[str, Any]:
    """A pod spec that the scheduler can only put on one node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = dict(spec.get("affinity") or {})
    towards = dict(affinity.get("nodeAffinity") or {})
    terms = (towards.get(required) or {}).get("nodeSelectorTerms") or [{}]
    towards[required] = {"nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]}
    affinity["nodeAffinity"] = towards
    return {**spec, "affinity": affinity, "tolerations": daemon_tolerations(spec)}


def node_of(pod: Pod) -> str:
    """The node a daemon's pod is on, or is bound for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    for term in terms:
        for field in term.match_fields:
            if field.key == "metadata.name" and len(field.values) == 1:
                return field.values[0]
    return ""
