"""The plugins, in the order and with the weights of kube-scheduler's default profile."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.cluster.scheduler.framework import Filter, Scorer
from kvestigate.cluster.scheduler.plugins.devices import DynamicResources
from kvestigate.cluster.scheduler.plugins.node_resources import Allocation, BalancedAllocation, Fit
from kvestigate.cluster.scheduler.plugins.nodes import (
    NodeAffinity,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    PreferredNodes,
    SoftTaints,
    TaintToleration,
)
from kvestigate.cluster.scheduler.plugins.pod_affinity import InterPodAffinity, PreferredNeighbours
from kvestigate.cluster.scheduler.plugins.topology_spread import EvenSpread, PodTopologySpread
from kvestigate.cluster.scheduler.plugins.volumes import (
    VolumeBinding,
    VolumeRestrictions,
)


@dataclass(frozen=True, slots=True)
class Profile:
    """Which plugins decide."""

    filters: tuple[Filter, ...]
    """In this order; the first that rejects a node is the one that is told of."""
    scorers: tuple[tuple[Scorer, int], ...]
    """With their weights."""


_FILTERS: tuple[Filter, ...] = (
    NodeUnschedulable(),
    NodeName(),
    TaintToleration(),
    NodeAffinity(),
    NodePorts(),
    Fit(),
    VolumeRestrictions(),
    VolumeBinding(),
    DynamicResources(),
    PodTopologySpread(),
    InterPodAffinity(),
)


_SCORERS: tuple[tuple[Scorer, int], ...] = (
    (SoftTaints(), 3),
    (PreferredNodes(), 2),
    (Allocation(), 1),
    (EvenSpread(), 2),
    (PreferredNeighbours(), 2),
    (BalancedAllocation(), 1),
)

DEFAULT = Profile(_FILTERS, _SCORERS)
