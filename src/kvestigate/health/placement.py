"""What a pod that cannot be scheduled lacks on the nodes there are: names, not counts. Pure.

The scheduler says how many nodes have too little or too much of something; these sentences add
which taint, which label, how much, and whose port.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from kvestigate.health.cluster import Cluster, as_selector, claims_of
from kvestigate.kube.eligibility import untolerated
from kvestigate.kube.requests import requests_of
from kvestigate.kube.views.core import Taint
from kvestigate.kube.views.meta import LabelSelector
from kvestigate.kube.views.placement import NodeSelectorRequirement, PodAffinityTerm
from kvestigate.render.human import cores, counted, listed, size
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.pods import Pod

_NAMED = 3
_HARD = ("NoSchedule", "NoExecute")
_CORDONED = "node.kubernetes.io/unschedulable"


class Placement:
    """The nodes of one cluster, as pods that wait for one see them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes = cluster.of(listings.NODES)

    @cached_property
    def usable(self) -> tuple[NodeCapacity, ...]:
        """Nodes that take pods; empty if not all requests are known."""
        if self._cluster.snapshot.namespace or not self._cluster.knows(listings.NODES):
            return ()
        all_nodes = capacities(self._nodes, self._cluster.snapshot.derived(requested))
        return tuple(node for node in all_nodes if node.ready and node.schedulable)

    @cached_property
    def _host_ports(self) -> dict[int, list[Pod]]:
        users: dict[int, list[Pod]] = {}
        for pod in self._cluster.pods:
            for container in pod.spec.containers if pod.spec.node_name else ():
                for port in container.ports:
                    if port.host_port:
                        users.setdefault(port.host_port, []).append(pod)
        return users

    def details(self, pod: Pod, message: str) -> Iterator[str]:
        """Sentences about what the scheduler's message only counts."""
        if "taint" in message:
            yield from self._taints(pod)
        if "node affinity" in message or "node selector" in message or "[NodeAffinity]" in message:
            yield from self._labels(pod)
        if "free ports" in message:
            yield from self._ports(pod)
        if "affinity rules" in message:
            yield from self._neighbours(pod)
        if "topology spread" in message:
            yield from self._spread(pod)
        if "volume node affinity" in message or "PersistentVolume's node" in message:
            yield from self._volumes(pod)

    def _taints(self, pod: Pod) -> Iterator[str]:
        nodes: dict[str, list[str]] = {}
        for node in self._nodes:
            for taint in untolerated(pod.spec.tolerations, node.spec.taints, _HARD):
                if taint.key != _CORDONED:
                    nodes.setdefault(_written(taint), []).append(node.metadata.name)
        for written, names in list(nodes.items())[:_NAMED]:
            yield f"The pod does not tolerate the taint {written} of {_few(names)}."

    def _labels(self, pod: Pod) -> Iterator[str]:
        for key, value in pod.spec.node_selector.items():
            if not any(node.metadata.labels.get(key) == value for node in self._nodes):
                yield f"No node has the label {key}={value}{self._instead(key)}."
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
        for term in terms[:_NAMED]:
            wanted = ", ".join(map(_required, (*term.match_expressions, *term.match_fields)))
            keys = [one.key for one in term.match_expressions]
            offered = "".join(self._instead(key) for key in keys[:1])
            yield f"The pod's node affinity requires {wanted}{offered}."

    def _instead(self, key: str) -> str:
        """What the nodes have for a label."""
        values = {node.metadata.labels[key] for node in self._nodes if key in node.metadata.labels}
        if not values:
            return f" (no node has a label {key})" if self._nodes else ""
        return f" (the nodes have {key}={'|'.join(sorted(values)[:_NAMED])})"

    def _ports(self, pod: Pod) -> Iterator[str]:
        for container in pod.spec.containers:
            for port in container.ports:
                users = self._host_ports.get(port.host_port, []) if port.host_port else []
                if users:
                    named = [
                        f"{user.metadata.namespace}/{user.metadata.name} on {user.spec.node_name}"
                        for user in users
                    ]
                    pods = "pod" if len(users) == 1 else "pods"
                    yield f"Host port {port.host_port} is in use by {pods} {_few(named)}."

    def _neighbours(self, pod: Pod) -> Iterator[str]:
        affinity = pod.spec.affinity
        near = affinity.pod_affinity if affinity else None
        far = affinity.pod_anti_affinity if affinity else None
        for term in near.required if near else ():
            none = "; no such pod exists" if self._nobody(pod, term) else ""
            yield (
                f"Its pod affinity requires a pod with {_selector(term.label_selector)} in the "
                f"same {term.topology_key}{none}."
            )
        for term in far.required if far else ():
            yield (
                f"Its pod anti-affinity allows no pod with {_selector(term.label_selector)} in "
                f"the same {term.topology_key}."
            )

    def _nobody(self, pod: Pod, term: PodAffinityTerm) -> bool:
        """Whether surely no pod matches."""
        if term.namespaces or term.namespace_selector is not None:
            return False
        chosen = as_selector(term.label_selector)
        return not any(
            one.spec.node_name for one in self._cluster.selected(chosen, pod.metadata.namespace)
        )

    def _spread(self, pod: Pod) -> Iterator[str]:
        for constraint in pod.spec.topology_spread_constraints:
            if constraint.when_unsatisfiable != "DoNotSchedule":
                continue
            key = constraint.topology_key
            without = [node for node in self._nodes if key not in node.metadata.labels]
            bare = f"; {counted(len(without), 'node')} without this label" if without else ""
            yield f"The pod spreads over {key} with maxSkew {constraint.max_skew}{bare}."

    def _volumes(self, pod: Pod) -> Iterator[str]:
        """Where the volumes of the pod can be mounted."""
        for name in claims_of(pod):
            claim = self._cluster.find(listings.CLAIMS, name, pod.metadata.namespace)
            bound = claim.spec.volume_name if claim is not None else ""
            volume = self._cluster.find(listings.VOLUMES, bound) if bound else None
            affinity = volume.spec.node_affinity if volume is not None else None
            terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
            for term in terms[:1]:
                wanted = ", ".join(map(_required, (*term.match_expressions, *term.match_fields)))
                offered = "".join(self._instead(one.key) for one in term.match_expressions[:1])
                yield (
                    f"PersistentVolume {bound} of claim {name} can only be mounted where "
                    f"{wanted}{offered}."
                )

    # Amounts

    def shortage(self, pod: Pod, message: str) -> tuple[str, bool]:
        """Which resource no usable node has enough of, and whether its free parts would do."""
        for resource, amount in requests_of(pod.spec).items():
            if not amount or f"Insufficient {resource}" not in message or not self.usable:
                continue
            best = max(self.usable, key=lambda node: node.free(resource))
            if best.free(resource) >= amount:
                continue
            return self._short(resource, amount, best), self.scattered(resource, amount)
        return "", False

    def scattered(self, resource: str, amount: int) -> bool:
        """Whether a node is large enough and enough is free, but on different nodes."""
        free = sum(max(node.free(resource), 0) for node in self.usable)
        largest = max((node.allocatable.get(resource, 0) for node in self.usable), default=0)
        return free >= amount and largest >= amount

    def _short(self, resource: str, amount: int, best: NodeCapacity) -> str:
        unit = "" if resource in ("cpu", "memory", "ephemeral-storage") else f" {resource}"
        largest = max(self.usable, key=lambda node: node.allocatable.get(resource, 0))
        most = largest.allocatable.get(resource, 0)
        wanted = _amount(resource, amount)
        if not most:
            return f"The pod requests {wanted}{unit}, and no node offers {resource}."
        waits = f"The pod stays Pending until a node has {wanted} free{unit}."
        if most < amount:
            has = f"{largest.name} has {_amount(resource, most)}{unit}"
            return f"{waits} No node is that large: {has}."
        block = _amount(resource, max(best.free(resource), 0))
        text = f"{waits} The largest free block is {block} ({best.name})."
        if self.scattered(resource, amount):
            free = sum(max(node.free(resource), 0) for node in self.usable)
            text += f" {_amount(resource, free)}{unit} are free in total, but on different nodes."
        return text


def _amount(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{cores(amount / 1000)} CPU"
    if resource in ("memory", "ephemeral-storage"):
        return f"{size(amount)} {resource}"
    return str(amount)


def _written(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _required(requirement: NodeSelectorRequirement) -> str:
    values = f" [{', '.join(requirement.values)}]" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def _selector(selector: LabelSelector | None) -> str:
    """`app=cache,tier In [a, b]`"""
    if selector is None:
        return "no labels"
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        values = f" [{', '.join(one.values)}]" if one.values else ""
        parts.append(f"{one.key} {one.operator}{values}")
    return ",".join(parts) or "any labels"


def _few(names: Iterable[str]) -> str:
    """The first few names, each once, and how many more."""
    return listed(list(dict.fromkeys(names)), _NAMED)
