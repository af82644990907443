"""What topology spread and pod affinity of a demand mean for the nodes. Pure."""

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
from kvestigate.kube.views.pods import CondensedPod as Pod
from kvestigate.kube.views.pods import PodSpec
from kvestigate.planning.constraints import selected, taints_against
from kvestigate.planning.model import Demand, Domains

_PREFERRED = "ScheduleAnyway"


@dataclass(frozen=True, slots=True)
class Rules:
    demand: Demand
    """The demand, with `one_per_node` and `single_node` as the rules require."""
    domains: Domains | None
    repelled: frozenset[str]
    """Nodes that anti-affinity excludes because of the pods in their domain."""
    lonely: frozenset[str] = frozenset()
    """Nodes that affinity excludes because no matching pod is in their domain."""


def rules_of(demand: Demand, nodes: Sequence[Node], pods: Sequence[Pod]) -> Rules:
    """Raises InputError for rules that are not supported, rather than ignore them."""
    bound = [pod for pod in pods if pod.spec.node_name and not pod.finished]
    affinity = demand.spec.affinity
    near = affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()
    if len(near) > 1:
        raise InputError(
            "more than one required podAffinity term is not supported",
            where="spec.affinity.podAffinity",
            hint="keep one and remove the others",
        )
    groups: list[Domains] = []
    lonely: frozenset[str] = frozenset()
    for term in near:
        lonely, together = _near(demand, term, nodes, bound)
        groups += [together] if together else []
    repelled: frozenset[str] = frozenset()
    anti = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()
    for term in anti:
        repelled |= _repelled(demand, term, nodes, bound)
        if _means_itself(demand, term):
            groups.append(_apart(term, nodes))
    for constraint in demand.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != _PREFERRED:
            groups.append(_spread(demand, constraint, nodes, bound))
    return replace(_combined(demand, groups, repelled), lonely=lonely)


def preferences(spec: PodSpec) -> tuple[str, ...]:
    """Notes on what the manifest prefers. A plan ignores it, as the scheduler may."""
    affinity = spec.affinity or Affinity()
    preferences = (
        ("preferred node affinity", affinity.node_affinity and affinity.node_affinity.preferred),
        ("preferred pod affinity", affinity.pod_affinity and affinity.pod_affinity.preferred),
        (
            "preferred pod anti-affinity",
            affinity.pod_anti_affinity and affinity.pod_anti_affinity.preferred,
        ),
        (
            "topology spread with ScheduleAnyway",
            any(
                constraint.when_unsatisfiable == _PREFERRED
                for constraint in spec.topology_spread_constraints
            ),
        ),
    )
    return tuple(
        f"{name} is ignored: it is not a hard rule" for name, present in preferences if present
    )


def _combined(demand: Demand, groups: list[Domains], repelled: frozenset[str]) -> Rules:
    grouping = []
    for domains in groups:
        alone = len(set(domains.of.values())) == len(domains.of)
        if domains.each == 1 and alone:
            demand = replace(demand, one_per_node=True)
        elif domains.together and alone:
            demand = replace(demand, single_node=True)
        else:
            grouping.append(domains)
    keys = [domains.key for domains in grouping]
    if len(keys) > 1 or (keys and demand.single_node):
        raise InputError(
            "more than one rule about groups of nodes is not supported: "
            f"{', '.join([*keys, *(['--single-node'] if demand.single_node else [])])}",
            hint="keep one and remove the others",
        )
    return Rules(demand, grouping[0] if grouping else None, repelled)


def _near(
    demand: Demand, term: PodAffinityTerm, nodes: Sequence[Node], pods: Sequence[Pod]
) -> tuple[frozenset[str], Domains | None]:
    """The excluded nodes. If the term matches the demand itself, the first pod may go anywhere."""
    of = _domain_of(term.topology_key, nodes)
    matching = _domains_with(demand, term, of, pods, "podAffinity")
    if not matching and _means_itself(demand, term):
        unlabelled = frozenset(node.metadata.name for node in nodes) - of.keys()
        present = dict.fromkeys(of.values(), 0)
        return unlabelled, Domains(term.topology_key, of, present, together=True)
    return frozenset(
        node.metadata.name for node in nodes if of.get(node.metadata.name) not in matching
    ), None


def _repelled(
    demand: Demand, term: PodAffinityTerm, nodes: Sequence[Node], pods: Sequence[Pod]
) -> frozenset[str]:
    of = _domain_of(term.topology_key, nodes)
    closed = _domains_with(demand, term, of, pods, "podAntiAffinity")
    return frozenset(node for node, domain in of.items() if domain in closed)


def _domains_with(
    demand: Demand, term: PodAffinityTerm, of: dict[str, str], pods: Sequence[Pod], where: str
) -> set[str]:
    """The domains with pods that the term matches."""
    if term.namespace_selector is not None and term.namespace_selector != LabelSelector():
        raise InputError(
            "a namespaceSelector with conditions is not supported",
            where=f"spec.affinity.{where}",
            hint="list the names in `namespaces` instead",
        )
    return {
        of[pod.spec.node_name]
        for pod in pods
        if pod.spec.node_name in of
        and _in_scope(demand, term, pod.metadata.namespace)
        and _matches(term.label_selector, pod.metadata.labels)
    }


def _means_itself(demand: Demand, term: PodAffinityTerm) -> bool:
    return _in_scope(demand, term, demand.namespace) and _matches(
        term.label_selector, demand.own_labels
    )


def _in_scope(demand: Demand, term: PodAffinityTerm, namespace: str) -> bool:
    if term.namespace_selector is not None:
        return True  # an empty selector; one with conditions was refused
    return namespace in (term.namespaces or (demand.namespace,))


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
