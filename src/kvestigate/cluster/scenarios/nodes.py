"""The nodes of a scenario. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kvestigate.cluster.node.config import SELDOM, NodeConfig
from kvestigate.cluster.node.gpu.model import Condition, Gpu, Steady, gpu_uuid, instances
from kvestigate.cluster.scenarios.model import (
    GpuCondition,
    GpuState,
    HostKind,
    NodeGpus,
    NodeGroup,
    Scenario,
)
from kvestigate.cluster.scenarios.templates import filled
from kvestigate.errors import InputError
from kvestigate.kube import quantities

_MANY = 100
"""Nodes beyond which each start of a container is no event of its own, and each works on one
pod at a time."""


@dataclass(frozen=True, slots=True)
class NodePlan:
    config: NodeConfig
    host: HostKind
    cordoned: bool
    lost: bool


def nodes(scenario: Scenario) -> list[NodePlan]:
    """Every node, in the order of the scenario; InputError for a name that is given twice."""
    plans = [
        plan
        for index, group in enumerate(scenario.spec.nodes)
        for plan in _plans(scenario, group, f"spec.nodes[{index}]")
    ]
    names: set[str] = set()
    for plan in plans:
        if plan.config.name in names:
            raise InputError(f'two nodes are named "{plan.config.name}"', where="spec.nodes")
        names.add(plan.config.name)
    return plans


def _plans(scenario: Scenario, group: NodeGroup, path: str) -> Iterator[NodePlan]:
    for number in range(group.first, group.first + group.count):
        name = str(filled(group.name, {"n": number}, f"{path}.name"))
        values = {"n": number, "name": name}
        config = NodeConfig(
            name,
            labels=filled(group.labels, values, f"{path}.labels"),
            annotations=filled(group.annotations, values, f"{path}.annotations"),
            taints=group.taints,
            capacity=group.capacity,
            pods=group.pods,
            gpus=_gpus(group.gpus, name, scenario.spec.seed, path) if group.gpus else (),
            missing_images=scenario.spec.missingImages,
        )
        if group.count > _MANY:
            config = replace(config, terse=True, workers=1, heartbeat=SELDOM)
        yield NodePlan(config, group.host, group.cordoned, group.lost)


def _gpus(gpus: NodeGpus, node: str, seed: int, path: str) -> tuple[Gpu, ...]:
    return tuple(_gpu(gpus, node, index, seed, path) for index in range(gpus.count))


def _gpu(gpus: NodeGpus, node: str, index: int, seed: int, path: str) -> Gpu:
    described = index < len(gpus.each)
    state = gpus.each[index] if described else gpus.state
    uuid = gpu_uuid(node, index)
    return Gpu(
        index,
        uuid,
        gpus.model,
        state.load,
        always=state.outsidePods,
        steady=_steady(state, f"{path}.gpus.each[{index}]" if described else f"{path}.gpus.state"),
        condition=_condition(state.condition),
        seed=zlib.crc32(f"{seed}/{node}/{index}".encode()) % 1000,
        instances=instances(uuid, gpus.mig),
        offer=gpus.offer,
    )


def _condition(described: GpuCondition) -> Condition:
    return Condition(
        described.lost,
        described.xid,
        described.ecc,
        described.eccLifetime,
        described.rowRemap,
        described.throttle,
        described.pcieWidth,
        described.nvlinkErrors,
    )


def _steady(state: GpuState, path: str) -> Steady:
    memory = None
    if state.memory is not None:
        try:
            memory = quantities.whole(state.memory) // 1024**2
        except InputError as error:
            raise InputError(error.message, where=f"{path}.memory") from None
    return Steady(state.utilization, memory, state.temperature, state.watts)
