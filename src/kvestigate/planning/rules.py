"""PURE. Topology spread and anti-affinity of a demand, as what they mean for the nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from kvestigate.errors import InputError
from kvestigate.kube import selectors
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import LabelSelector
from kvestigate.kube.views.placement import Affinity, PodAffinityTerm, TopologySpreadConstraint
from kvestigate.kube.views.pods import PodSpec
from kvestigate.observe.views import Pod
from kvestigate.planning.constraints import selected, taints_against
from kvestigate.planning.model import Demand, Domains

_WISH = "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class Rules:
    demand: Demand
    """With what the rules say about single nodes."""
    domains: Domains | None
    repelled: frozenset[str]
    """Nodes that pods which are there already close to the demand."""


def rules_of(demand: Demand, nodes: Sequence[Node], pods: Sequence[Pod]) -> Rules:
    """InputError for rules that are not planned with: none is left out silently."""
    living = [pod for pod in pods if pod.spec.node_name and not pod.finished]
    affinity = demand.spec.affinity
    if affinity and affinity.pod_affinity and affinity.pod_affinity.required:
        raise InputError(
            "required pod affinity is not planned with",
            where="spec.affinity.podAffinity",
            hint="name the nodes that come into question with --label, and leave it out here",
        )
    found: list[Domains] = []
    repelled: frozenset[str] = frozenset()
    anti = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()
    for term in anti:
        repelled |= _repelled(demand, term, nodes, living)
        if _matches(term.label_selector, demand.own_labels):
            found.append(_apart(term, nodes))
    for constraint in demand.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != _WISH:
            found.append(_spread(demand, constraint, nodes, living))
    return _together(demand, found, repelled)


def wishes(spec: PodSpec) -> tuple[str, ...]:
    """What the manifest prefers and a plan does not heed, because the scheduler may not either."""
    affinity = spec.affinity or Affinity()
    found = (
        ("preferred node affinity", affinity.node_affinity and affinity.node_affinity.preferred),
        ("preferred pod affinity", affinity.pod_affinity and affinity.pod_affinity.preferred),
        (
            "preferred pod anti-affinity",
            affinity.pod_anti_affinity and affinity.pod_anti_affinity.preferred,
        ),
        (
            "topology spread with ScheduleAnyway",
            any(it.when_unsatisfiable == _WISH for it in spec.topology_spread_constraints),
        ),
    )
    return tuple(f"{name} is a wish, no hard rule: left out" for name, there in found if there)


def _together(demand: Demand, found: list[Domains], repelled: frozenset[str]) -> Rules:
    grouping = []
    for domains in found:
        alone = len(set(domains.of.values())) == len(domains.of)
        if domains.each == 1 and alone:
            demand = replace(demand, one_per_node=True)
        else:
            grouping.append(domains)
    keys = [domains.key for domains in grouping]
    if len(keys) > 1 or (keys and demand.single_node):
        raise InputError(
            f"several rules about groups of nodes at once are not planned with: "
            f"{', '.join([*keys, *(['--single-node'] if demand.single_node else [])])}",
            hint="keep the one that matters most, and leave the others out",
        )
    return Rules(demand, grouping[0] if grouping else None, repelled)


def _repelled(
    demand: Demand, term: PodAffinityTerm, nodes: Sequence[Node], pods: Sequence[Pod]
) -> frozenset[str]:
    if term.namespace_selector is not None and term.namespace_selector != LabelSelector():
        raise InputError(
            "a namespaceSelector with conditions is not planned with",
            where="spec.affinity.podAntiAffinity",
            hint="list the namespaces in `namespaces`",
        )
    everywhere = term.namespace_selector is not None
    namespaces = term.namespaces or (demand.namespace,)
    of = _domain_of(term.topology_key, nodes)
    closed = {
        of.get(pod.spec.node_name)
        for pod in pods
        if (everywhere or pod.metadata.namespace in namespaces)
        and _matches(term.label_selector, pod.metadata.labels)
    }
    return frozenset(node for node, domain in of.items() if domain in closed)


def _apart(term: PodAffinityTerm, nodes: Sequence[Node]) -> Domains:
    of = _domain_of(term.topology_key, nodes)
    return Domains(term.topology_key, of, dict.fromkeys(of.values(), 0), each=1)


def _spread(
    demand: Demand, constraint: TopologySpreadConstraint, nodes: Sequence[Node], pods: Sequence[Pod]
) -> Domains:
    counted = [
        node
        for node in nodes
        if (constraint.node_affinity_policy == "Ignore" or selected(demand, node))
        and (constraint.node_taints_policy == "Ignore" or not taints_against(demand, node))
    ]
    of = _domain_of(constraint.topology_key, counted)
    present = Counter(dict.fromkeys(of.values(), 0))
    # With matchLabelKeys a new revision does not see the pods of the old one.
    if not constraint.match_label_keys:
        for pod in pods:
            if pod.metadata.namespace == demand.namespace and pod.spec.node_name in of:
                present[of[pod.spec.node_name]] += _matches(
                    constraint.label_selector, pod.metadata.labels
                )
    from_zero = len(present) < (constraint.min_domains or 0)
    if _matches(constraint.label_selector, demand.own_labels):
        return Domains(
            constraint.topology_key, of, present, constraint.max_skew, from_zero=from_zero
        )
    lowest = 0 if from_zero else min(present.values(), default=0)
    level = {name for name, count in present.items() if count - lowest <= constraint.max_skew}
    low = {node: name for node, name in of.items() if name in level}
    return Domains(constraint.topology_key, low, {name: present[name] for name in level})


def _domain_of(key: str, nodes: Sequence[Node]) -> dict[str, str]:
    return {
        node.metadata.name: node.metadata.labels[key]
        for node in nodes
        if key in node.metadata.labels
    }


def _matches(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    plain = None if selector is None else msgspec.to_builtins(selector)
    return selectors.from_label_selector(plain).matches(labels)
