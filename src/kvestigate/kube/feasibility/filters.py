"""All filters, in the order of kube-scheduler's default profile. Pure."""

from __future__ import annotations

from kvestigate.kube.feasibility.devices import DynamicResources
from kvestigate.kube.feasibility.framework import Filter, Judge, Rejection
from kvestigate.kube.feasibility.node_filters import (
    Fit,
    NodeAffinity,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from kvestigate.kube.feasibility.nodes import NodeState
from kvestigate.kube.feasibility.pod_affinity import InterPodAffinity
from kvestigate.kube.feasibility.pods import PodFacts
from kvestigate.kube.feasibility.state import ClusterState
from kvestigate.kube.feasibility.topology_spread import PodTopologySpread
from kvestigate.kube.feasibility.volumes import VolumeBinding, VolumeRestrictions

FILTERS: tuple[Filter, ...] = (
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
"""In this order; the first that rejects a node is the one that is told of."""


def judges_of(
    pod: PodFacts, state: ClusterState, filters: tuple[Filter, ...] = FILTERS
) -> list[Judge] | Rejection:
    """The functions that filter nodes for this pod; a rejection if no node will do."""
    judges: list[Judge] = []
    for plugin in filters:
        verdict = plugin.judge(pod, state)
        if isinstance(verdict, Rejection):
            return verdict
        if verdict is not None:
            judges.append(verdict)
    return judges


def first_rejection(judges: list[Judge], node: NodeState) -> Rejection | None:
    for judge in judges:
        rejection = judge(node)
        if rejection is not None:
            return rejection
    return None
