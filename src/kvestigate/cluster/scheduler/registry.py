"""The plugins, in the order and with the weights of kube-scheduler's default profile."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.cluster.scheduler.framework import Scorer
from kvestigate.cluster.scheduler.plugins.devices import PreferredDevices
from kvestigate.cluster.scheduler.plugins.node_resources import Allocation, BalancedAllocation
from kvestigate.cluster.scheduler.plugins.nodes import PreferredNodes, SoftTaints
from kvestigate.cluster.scheduler.plugins.pod_affinity import PreferredNeighbours
from kvestigate.cluster.scheduler.plugins.topology_spread import EvenSpread
from kvestigate.kube.feasibility.filters import FILTERS
from kvestigate.kube.feasibility.framework import Filter


@dataclass(frozen=True, slots=True)
class Profile:
    """Which plugins decide."""

    filters: tuple[Filter, ...]
    """In this order; the first that rejects a node is the one that is told of."""
    scorers: tuple[tuple[Scorer, int], ...]
    """With their weights."""


_SCORERS: tuple[tuple[Scorer, int], ...] = (
    (SoftTaints(), 3),
    (PreferredNodes(), 2),
    (Allocation(), 1),
    (PreferredDevices(), 2),
    (EvenSpread(), 2),
    (PreferredNeighbours(), 2),
    (BalancedAllocation(), 1),
)

DEFAULT = Profile(FILTERS, _SCORERS)
