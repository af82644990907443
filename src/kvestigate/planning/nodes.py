"""PURE. Which nodes a demand may use, how many replicas each takes, and what bars the others."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.kube.eligibility import matches_node, untolerated
from kvestigate.kube.requests import Amounts
from kvestigate.kube.views.core import Node, Taint
from kvestigate.kube.views.placement import Toleration
from kvestigate.observe.capacity import NodeCapacity, capacities
from kvestigate.observe.gpus import MIG_PREFIX, SHARED, vendor_of
from kvestigate.observe.views import Pod
from kvestigate.planning.model import GPU, Demand, Room

_EFFECTS = ("NoSchedule", "NoExecute")
_ORDER = (GPU, "memory", "cpu")


class Bar(enum.Enum):
    """Why a node is not used. The first that applies counts."""

    EXCLUDED = "excluded"
    LABELS = "labels do not match"
    NOT_READY = "not ready"
    CORDONED = "cordoned"
    TAINTED = "tainted"
    REPELLED = "pods there repel it"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, whether it may be used or not."""

    node: Node
    free: Amounts
    slots: int
    """Replicas that its free resources take, barred or not."""
    bar: Bar | None
    taint: str = ""
    """The one in the way: `dedicated=infra:NoSchedule`."""

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def room(self) -> Room:
        return Room(self.name, self.slots, tuple(self.free.get(name, 0) for name in _ORDER))


def candidates(
    demand: Demand, nodes: Sequence[Node], pods: Iterable[Pod], repelled: frozenset[str]
) -> tuple[Candidate, ...]:
    """Every node, in the order of the nodes; `repelled` are those that other pods close to it."""
    return tuple(
        _candidate(demand, node, capacity, repelled)
        for node, capacity in zip(nodes, capacities(nodes, pods), strict=True)
    )


def selected(demand: Demand, node: Node) -> bool:
    """Whether the demand wants such a node, whatever state it is in."""
    return (
        node.metadata.name not in demand.exclude
        and demand.labels.matches(node.metadata.labels)
        and matches_node(demand.spec, node)
    )


def taints_against(demand: Demand, node: Node) -> list[Taint]:
    return untolerated(_tolerations(demand), node.spec.taints, _EFFECTS)


def slots_in(free: Amounts, need: Amounts) -> int:
    """Replicas that fit side by side."""
    return min(
        (max(free.get(name, 0), 0) // amount for name, amount in need.items() if amount), default=0
    )


def _candidate(
    demand: Demand, node: Node, capacity: NodeCapacity, repelled: frozenset[str]
) -> Candidate:
    free = _free(capacity)
    slots = slots_in(free, demand.need)
    taints = taints_against(demand, node)
    return Candidate(
        node=node,
        free=free,
        slots=min(slots, 1) if demand.one_per_node else slots,
        bar=_bar(demand, node, capacity, taints, repelled),
        taint=_written(taints[0]) if taints else "",
    )


def _free(capacity: NodeCapacity) -> Amounts:
    free = {name: capacity.free(name) for name in capacity.allocatable}
    whole = [amount for name, amount in free.items() if _is_whole_gpu(name)]
    return {**free, GPU: max(whole, default=0)}


def _is_whole_gpu(resource: str) -> bool:
    return bool(vendor_of(resource)) and not (
        resource.startswith(MIG_PREFIX) or resource.endswith(SHARED)
    )


def _bar(
    demand: Demand,
    node: Node,
    capacity: NodeCapacity,
    taints: list[Taint],
    repelled: frozenset[str],
) -> Bar | None:
    checks = (
        (Bar.EXCLUDED, node.metadata.name in demand.exclude),
        (Bar.LABELS, not selected(demand, node)),
        (Bar.NOT_READY, not capacity.ready),
        (Bar.CORDONED, not capacity.schedulable),
        (Bar.TAINTED, bool(taints)),
        (Bar.REPELLED, node.metadata.name in repelled),
    )
    return next((bar for bar, applies in checks if applies), None)


def _tolerations(demand: Demand) -> tuple[Toleration, ...]:
    """What is written, and what clusters add themselves for those who ask for a device."""
    asked = (name for name, amount in demand.need.items() if amount and "/" in name)
    keys = [*asked, *(_GPU_TAINTS if demand.need.get(GPU) else ())]
    return (*demand.spec.tolerations, *(Toleration(key=key, operator="Exists") for key in keys))


_GPU_TAINTS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")


def _written(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
