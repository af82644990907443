"""The plugins, in the order and with the weights of kube-scheduler's default profile."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.cluster.scheduler.framework import Filter, Scorer
from kvestigate.cluster.scheduler.plugins.family_spread import FamilySpread
from kvestigate.cluster.scheduler.plugins.node_affinity import NodeAffinity, PreferredNodes
from kvestigate.cluster.scheduler.plugins.node_name import NodeName
from kvestigate.cluster.scheduler.plugins.node_ports import NodePorts
from kvestigate.cluster.scheduler.plugins.node_resources import Allocation, BalancedAllocation, Fit
from kvestigate.cluster.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kvestigate.cluster.scheduler.plugins.pod_affinity import InterPodAffinity, PreferredNeighbours
from kvestigate.cluster.scheduler.plugins.taint_toleration import SoftTaints, TaintToleration
from kvestigate.cluster.scheduler.plugins.topology_spread import EvenSpread, PodTopologySpread
from kvestigate.cluster.scheduler.plugins.volume_binding import VolumeBinding
from kvestigate.cluster.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kvestigate.cluster.scheduler.plugins.volume_zone import VolumeZone


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
    VolumeZone(),
    PodTopologySpread(),
    InterPodAffinity(),
)


_SCORERS: tuple[tuple[Scorer, int], ...] = (
    (SoftTaints(), 3),
    (PreferredNodes(), 2),
    (Allocation(), 1),
    (EvenSpread(), 2),
    (FamilySpread(), 2),
    (PreferredNeighbours(), 2),
    (BalancedAllocation(), 1),
)

DEFAULT = Profile(_FILTERS, _SCORERS)
