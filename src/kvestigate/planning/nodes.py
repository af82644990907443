"""Which nodes a demand can use, how many replicas fit on each, and why not others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube.requests import Amounts
from kvestigate.kube.views.core import Node
from kvestigate.planning.constraints import CONSTRAINTS
from kvestigate.planning.model import GPU, Constraint, Question, Room
from kvestigate.planning.rules import Rules
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested_by_node
from kvestigate.snapshot.gpus import MIG_PREFIX, SHARED, vendor_of
from kvestigate.snapshot.pods import Pod

_ORDER = (GPU, "memory", "cpu")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, whether it may be used or not."""

    node: Node
    offered: Amounts
    """Allocatable, requested or not."""
    free: Amounts
    slots: int
    """Replicas that fit into the free resources, whether the node can be used or not."""
    bar: Constraint | None
    """Why the node cannot be used; None if it can."""
    details: str = ""
    """`dedicated=infra:NoSchedule`"""

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def barred(self) -> str:
        """`tainted dedicated=infra:NoSchedule`; empty if the node can be used."""
        return f"{self.bar.name} {self.details}".strip() if self.bar else ""

    @property
    def room(self) -> Room:
        return Room(self.name, self.slots, tuple(self.free.get(name, 0) for name in _ORDER))


def candidates(rules: Rules, nodes: Sequence[Node], pods: Iterable[Pod]) -> tuple[Candidate, ...]:
    """Every node, in the order of the nodes."""
    return tuple(
        _candidate(rules, node, capacity)
        for node, capacity in zip(nodes, capacities(nodes, requested_by_node(pods)), strict=True)
    )


def slots_in(free: Amounts, need: Amounts) -> int:
    """How many replicas fit into the free resources."""
    return min(
        (max(free.get(name, 0), 0) // amount for name, amount in need.items() if amount), default=0
    )


def _candidate(rules: Rules, node: Node, capacity: NodeCapacity) -> Candidate:
    demand, name = rules.demand, node.metadata.name
    free = _counted({name: capacity.free(name) for name in capacity.allocatable})
    slots = slots_in(free, demand.need)
    question = Question(demand, node, capacity, name in rules.repelled, name in rules.lonely)
    bar = next((constraint for constraint in CONSTRAINTS if constraint.bars(question)), None)
    return Candidate(
        node=node,
        offered=_counted(capacity.allocatable),
        free=free,
        slots=min(slots, 1) if demand.one_per_node else slots,
        bar=bar,
        details=bar.details(question) if bar else "",
    )


def _counted(resources: Amounts) -> Amounts:
    """With the whole GPUs of any vendor under the name `gpu`."""
    whole = [amount for name, amount in resources.items() if _is_whole_gpu(name)]
    return {**resources, GPU: max(whole, default=0)}


def _is_whole_gpu(resource: str) -> bool:
    return bool(vendor_of(resource)) and not (
        resource.startswith(MIG_PREFIX) or resource.endswith(SHARED)
    )
