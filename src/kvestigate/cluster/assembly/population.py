"""What a cluster is filled with, as its shape or its scenario says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.model import node_gpus
from kvestigate.cluster.scenarios.library import Source, checked
from kvestigate.cluster.scenarios.model import HostKind, Scenario
from kvestigate.cluster.scenarios.nodes import NodePlan, nodes
from kvestigate.cluster.scenarios.objects import objects
from kvestigate.errors import InputError


@dataclass(frozen=True, slots=True)
class Population:
    plans: Sequence[NodePlan]
    manifests: Sequence[Mapping[str, Any]] | None
    """None without a scenario."""


def populated(cluster: ClusterDirectory, shape: Shape) -> Population:
    """A scenario is read from the cluster's own copy, so that it comes back the same."""
    if not shape.scenario:
        return Population(_alike(shape), None)
    path = cluster.scenario
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    scenario = checked(Source(str(path), text))
    return Population(nodes(scenario), objects(scenario))


def shape_of(scenario: Scenario) -> Shape:
    """What is told of a cluster that is made from a scenario."""
    plans = nodes(scenario)
    hosts = list(dict.fromkeys(plan.host.value for plan in plans))
    return Shape(
        nodes=len(plans),
        host="+".join(hosts),
        gpus=max((len(plan.config.gpus) for plan in plans), default=0),
        scenario=scenario.name,
    )


def _alike(shape: Shape) -> list[NodePlan]:
    host = HostKind(shape.host)
    names = [f"node-{number}" for number in range(1, shape.nodes + 1)]
    return [
        NodePlan(
            NodeConfig(name, gpus=node_gpus(name, shape.gpus, shape.gpu_model)),
            host,
            cordoned=False,
            lost=False,
        )
        for name in names
    ]
