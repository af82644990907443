"""Allocatable resources of nodes and the requests of their pods. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvestigate.kube.requests import PODS, Amounts, amounts, requests_of
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import CondensedPod as Pod
from kvestigate.snapshot import listings
from kvestigate.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """One node. CPU is in thousandths of a core, everything else in whole units."""

    name: str
    ready: bool
    schedulable: bool
    """Not cordoned."""
    allocatable: Amounts
    requested: Amounts
    """By the pods on the node that are not finished; `pods` is their number."""

    def free(self, resource: str) -> int:
        """Allocatable minus requested; negative on an overcommitted node."""
        return self.allocatable.get(resource, 0) - self.requested.get(resource, 0)


def capacities(nodes: Iterable[Node], requested: Mapping[str, Amounts]) -> tuple[NodeCapacity, ...]:
    """The capacity of each node; `requested` is by node name."""
    return tuple(
        NodeCapacity(
            name=node.metadata.name,
            ready=is_ready(node),
            schedulable=not node.spec.unschedulable,
            allocatable=amounts(node.status.allocatable),
            requested=requested.get(node.metadata.name, {}),
        )
        for node in nodes
    )


def requested(snapshot: Snapshot) -> dict[str, Amounts]:
    """Node -> requests, for `Snapshot.derived`: several reports need them."""
    return requested_by_node(snapshot.of(listings.PODS))


def requested_by_node(pods: Iterable[Pod]) -> dict[str, Amounts]:
    """Node -> the sum of the requests of its pods, as the scheduler counts them."""
    by_node: dict[str, Amounts] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.finished:
            total = by_node.setdefault(pod.spec.node_name, {})
            add(total, {**requests_of(pod.spec), PODS: 1})
    return by_node


def add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def is_ready(node: Node) -> bool:
    return any(
        condition.type == "Ready" and condition.status == "True"
        for condition in node.status.conditions
    )
