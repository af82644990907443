"""The types of planning: demand, free room, constraints, strategies. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kvestigate.kube.requests import Amounts
from kvestigate.kube.selectors import EVERYTHING, LabelSelector
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import PodSpec
from kvestigate.snapshot.capacity import NodeCapacity

GPU = "gpu"
"""Any vendor's GPU resource, for demands without a manifest that names one."""


@dataclass(frozen=True, slots=True)
class Demand:
    """A number of equal replicas to place."""

    replicas: int
    need: Amounts
    """What one replica requests; CPU in thousandths, `gpu` for GPUs of any vendor."""
    one_per_node: bool = False
    single_node: bool = False
    labels: LabelSelector = EVERYTHING
    """Labels that a node must have."""
    exclude: frozenset[str] = frozenset()
    """Names of nodes that must not be used."""
    spec: PodSpec = field(default_factory=PodSpec)
    """The pod spec of the manifest; empty without a manifest."""
    own_labels: dict[str, str] = field(default_factory=dict)
    namespace: str = ""
    gpu_memory_mib: int = 0
    """Memory that each GPU must have; 0 for any."""


@dataclass(frozen=True, slots=True)
class Room:
    """The free room of a node that can be used."""

    node: str
    slots: int
    """Replicas that fit."""
    spare: tuple[int, ...]
    """Free GPUs, memory and CPU: sorts nodes from full to empty."""


@dataclass(frozen=True, slots=True)
class Domains:
    """Groups of nodes that limit each other, by the value of one node label."""

    key: str
    of: dict[str, str]
    """Node -> domain. A node without the label gets no replicas."""
    present: dict[str, int]
    """Domain -> matching pods in it, with 0 for domains without."""
    skew: int | None = None
    """The most pods by which a domain may exceed the emptiest; None: no limit."""
    each: int | None = None
    """The most new replicas in one domain; None: no limit."""
    together: bool = False
    """All new replicas must be in the same domain."""
    from_zero: bool = False
    """There are fewer domains than `minDomains`, so the emptiest counts as 0."""


Placement = dict[str, int]
"""Node -> replicas; only nodes that get replicas."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a constraint decides on: one demand and one node."""

    demand: Demand
    node: Node
    capacity: NodeCapacity
    repelled: bool
    """Pod anti-affinity excludes the node."""
    lonely: bool
    """Pod affinity excludes the node."""
    refusal: str = ""
    """Why ports, volumes or pods that are there exclude the node; empty if they do not."""
    broken: str = ""
    """What is wrong with a GPU of the node that a new pod could get; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class Constraint:
    name: str
    """Describes the nodes that it excludes: `cordoned`."""
    bars: Callable[[Question], bool]
    way_out: str = ""
    """Completes `3 more replicas would fit if ...`; empty if the user can do nothing about it."""
    details: Callable[[Question], str] = lambda question: ""
    """More about one excluded node: its taint."""


@dataclass(frozen=True, slots=True)
class Strategy:
    name: str
    summary: str
    order: Callable[[Room], tuple[object, ...]]
    """The sort key of nodes: those that sort first are used first."""
    fill: Callable[[Sequence[Room], int], Placement]
    """Called only with as many replicas as there are slots."""
    wide: bool = False
    """Prefers placements on more nodes."""
