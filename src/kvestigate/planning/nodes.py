"""Which nodes a demand can use, how many replicas fit on each, and why not others. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from msgspec import structs

from kvestigate.kube.feasibility.filters import first_rejection, judges_of
from kvestigate.kube.feasibility.framework import Filter, Rejection
from kvestigate.kube.feasibility.node_filters import NodePorts
from kvestigate.kube.feasibility.pod_affinity import InterPodAffinity
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.feasibility.volumes import VolumeBinding, VolumeRestrictions, VolumeZone
from kvestigate.kube.requests import Amounts
from kvestigate.kube.unschedulable import about_node
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import Metadata
from kvestigate.kube.views.pods import CondensedPod as Pod
from kvestigate.kube.views.pods import Pod as FullPod
from kvestigate.planning.constraints import CONSTRAINTS
from kvestigate.planning.model import GPU, Constraint, Demand, Question, Room
from kvestigate.planning.rules import Rules
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested_by_node
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.gpus import MIG_PREFIX, SHARED, vendor_of
from kvestigate.snapshot.sickness import symptoms, unusable

_ORDER = (GPU, "memory", "cpu")
_FILTERS: tuple[Filter, ...] = (
    NodePorts(),
    VolumeRestrictions(),
    VolumeBinding(),
    VolumeZone(),
    InterPodAffinity(),
)


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


def candidates(
    rules: Rules,
    nodes: Sequence[Node],
    pods: Iterable[Pod],
    refusals: Mapping[str, str] = MappingProxyType({}),
    broken: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Candidate, ...]:
    """Every node, in the order of the nodes; `refusals` are those of `scheduler_refusals`.

    `broken` has by node what is wrong with a GPU that a new pod could get.
    """
    return tuple(
        _candidate(
            rules,
            node,
            capacity,
            refusals.get(node.metadata.name, ""),
            broken.get(node.metadata.name, ""),
        )
        for node, capacity in zip(nodes, capacities(nodes, requested_by_node(pods)), strict=True)
    )


def scheduler_refusals(demand: Demand, state: ClusterState) -> dict[str, str]:
    """Node -> what the scheduler's filters say of host ports, volumes and other pods' repulsion.

    Everything else depends on how many replicas are placed already, and has rules of its own.
    """
    spec = structs.replace(
        demand.spec,
        affinity=None,
        volumes=tuple(each for each in demand.spec.volumes if each.ephemeral is None),
    )
    meta = Metadata(name="planned", namespace=demand.namespace, labels=demand.own_labels)
    judges = judges_of(PodFacts(FullPod(metadata=meta, spec=spec)), state, _FILTERS)
    found = {}
    for name, node in state.nodes.items():
        rejection = judges if isinstance(judges, Rejection) else first_rejection(judges, node)
        if rejection is not None:
            found[name] = ", ".join(map(about_node, rejection.reasons))
    return found


def uses_host_ports(demand: Demand) -> bool:
    """Two replicas cannot listen on the same port of a node."""
    return bool(PodFacts(FullPod(spec=demand.spec)).ports)


def slots_in(free: Amounts, need: Amounts) -> int:
    """How many replicas fit into the free resources."""
    return min(
        (max(free.get(name, 0), 0) // amount for name, amount in need.items() if amount), default=0
    )


def broken_gpus(readings: Iterable[GpuReading]) -> dict[str, str]:
    """Node -> what is wrong with a GPU of it that must not be used and that no pod holds."""
    broken: dict[str, str] = {}
    for reading in readings:
        if reading.sensors is not None and not reading.pod and unusable(reading.sensors):
            says = symptoms(reading.sensors)[0].says
            broken.setdefault(reading.node, f"GPU {reading.index}: {says}")
    return broken


def _candidate(
    rules: Rules, node: Node, capacity: NodeCapacity, refusal: str, broken: str
) -> Candidate:
    demand, name = rules.demand, node.metadata.name
    free = _counted({name: capacity.free(name) for name in capacity.allocatable})
    slots = slots_in(free, demand.need)
    question = Question(
        demand, node, capacity, name in rules.repelled, name in rules.lonely, refusal, broken
    )
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
