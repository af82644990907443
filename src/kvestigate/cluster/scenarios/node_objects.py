"""The nodes of a scenario as Node objects, for planes whose workers simulate the nodes. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.node.gpu.model import gpu_annotations, gpu_capacity, node_labels
from kvestigate.cluster.node.gpu.slices import resource_slices
from kvestigate.cluster.scenarios.model import HostKind, Scenario
from kvestigate.cluster.scenarios.nodes import NodePlan, nodes
from kvestigate.cluster.workforce.nodes import ANNOTATION, MISSING_IMAGES
from kvestigate.errors import InputError

_SERVER = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi"}
"""What a node has that the scenario says nothing about."""
_PROCESSES = (HostKind.NAMESPACE, HostKind.DIRECTORY)


def node_objects(scenario: Scenario) -> list[dict[str, Any]]:
    """Nodes, and the slices of their GPUs.

    InputError if the scenario needs nodes that run processes: simulated nodes do not.
    """
    plans = nodes(scenario)
    slices = [
        each for plan in plans for each in resource_slices(plan.config.name, "", plan.config.gpus)
    ]
    return [*(_node(plan, scenario) for plan in plans), *slices]


def _node(plan: NodePlan, scenario: Scenario) -> dict[str, Any]:
    config = plan.config
    if plan.host in _PROCESSES:
        raise InputError(
            f"node {config.name} has host: {plan.host.value}, but nodes of a plane are always "
            "simulated",
            where=f"{scenario.name}: spec.nodes",
            hint=f"kvestigate up --scenario {scenario.name} runs such nodes",
        )
    annotations = {**gpu_annotations(config.gpus), **config.annotations}
    if plan.lost:
        annotations[ANNOTATION] = "false"
    if config.missing_images:
        annotations[MISSING_IMAGES] = ",".join(config.missing_images)
    spec: dict[str, Any] = {}
    if config.taints:
        spec["taints"] = [dict(taint) for taint in config.taints]
    if plan.cordoned:
        spec["unschedulable"] = True
    amounts = {
        **_SERVER,
        "pods": str(config.pods),
        **gpu_capacity(config.gpus),
        **config.capacity,
    }
    labels = {
        "kubernetes.io/hostname": config.name,
        **node_labels(config.gpus),
        **config.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": config.name, "labels": labels, "annotations": annotations},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": amounts},
    }
