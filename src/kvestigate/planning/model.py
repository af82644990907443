"""What is to be placed, where there is room, and what decides about it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kvestigate.kube.requests import Amounts
from kvestigate.kube.selectors import EVERYTHING, LabelSelector
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import PodSpec
from kvestigate.snapshot.capacity import NodeCapacity

GPU = "gpu"
"""Stands for whichever GPU resource a node has, where no manifest names one."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Replicas that are all alike."""

    replicas: int
    need: Amounts
    """Of each replica; CPU in thousandths, `gpu` for any vendor's."""
    one_per_node: bool = False
    single_node: bool = False
    labels: LabelSelector = EVERYTHING
    """Of the nodes that may be used."""
    exclude: frozenset[str] = frozenset()
    """Names of nodes that may not."""
    spec: PodSpec = field(default_factory=PodSpec)
    """What a manifest says about nodes; empty when there is none."""
    own_labels: dict[str, str] = field(default_factory=dict)
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """A node that may be used."""

    node: str
    slots: int
    """Replicas that fit."""
    spare: tuple[int, ...]
    """What is free, the scarcest kind first: orders nodes from tight to empty."""


@dataclass(frozen=True, slots=True)
class Domains:
    """Groups of nodes that limit each other, by the value of one node label."""

    key: str
    of: dict[str, str]
    """Node -> domain. A node without the label takes no replicas."""
    present: dict[str, int]
    """Domain -> pods already there that count. Every domain is listed."""
    skew: int | None = None
    """How much fuller a domain may be than the emptiest; None: no matter."""
    each: int | None = None
    """The most that any domain takes of the new replicas; None: no limit."""
    together: bool = False
    """All of the new replicas must be in one of them."""
    from_zero: bool = False
    """There are fewer domains than asked for, so the emptiest counts as empty."""


Placement = dict[str, int]
"""Node -> replicas, only nodes that get some."""


@dataclass(frozen=True, slots=True)
class Question:
    """May this demand use this node?"""

    demand: Demand
    node: Node
    capacity: NodeCapacity
    repelled: bool
    """Pods that are there already close it to the demand."""
    lonely: bool
    """Pods that the demand must be near are not there."""


@dataclass(frozen=True, slots=True)
class Constraint:
    name: str
    """What a node is that it applies to: `cordoned`."""
    bars: Callable[[Question], bool]
    way_out: str = ""
    """`... would fit if` this; empty if the user can do nothing about it."""
    details: Callable[[Question], str] = lambda question: ""
    """Of one node that it bars."""


@dataclass(frozen=True, slots=True)
class Strategy:
    name: str
    summary: str
    order: Callable[[Room], tuple[object, ...]]
    """The nodes that sort first are used first."""
    fill: Callable[[Sequence[Room], int], Placement]
    """Only asked for as many replicas as there are slots."""
    wide: bool = False
    """Of two placements the one on more nodes is better."""
