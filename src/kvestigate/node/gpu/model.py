"""GPUs and what they are doing: PURE. The load is a function of time, so nothing has to run."""

from __future__ import annotations

import enum
import math
import uuid
from dataclasses import dataclass

import msgspec

VARIABLE = "NVIDIA_VISIBLE_DEVICES"
"""Tells a container which GPUs are its own."""

_NAMESPACE = uuid.UUID("7a1f3c5e-9b64-4e0a-8a5d-1f0c6b2d4e90")
_BURST_SECONDS = 60.0


class Load(enum.Enum):
    """What a scenario lets a GPU do."""

    IDLE = "idle"
    """Nothing, and nothing is allocated on it."""
    RESERVED_IDLE = "reserved-idle"
    """Memory is taken, but nothing computes."""
    BUSY = "busy"
    BURSTY = "bursty"
    """Busy for half of every minute."""
    HOT = "hot"
    """Busy, and close to its temperature limit."""


@dataclass(frozen=True, slots=True)
class Model:
    """What a kind of GPU is."""

    name: str
    memory_mib: int
    watts: int
    architecture: str
    capability: str


MODELS = {
    "A100": Model("NVIDIA A100-SXM4-80GB", 81920, 400, "ampere", "8.0"),
    "H100": Model("NVIDIA H100 80GB HBM3", 81559, 700, "hopper", "9.0"),
    "H200": Model("NVIDIA H200", 143771, 700, "hopper", "9.0"),
    "L4": Model("NVIDIA L4", 23034, 72, "ada-lovelace", "8.9"),
    "L40S": Model("NVIDIA L40S", 46068, 350, "ada-lovelace", "8.9"),
    "T4": Model("Tesla T4", 15360, 70, "turing", "7.5"),
    "V100": Model("Tesla V100-SXM2-16GB", 16384, 300, "volta", "7.0"),
}


class Gpu(msgspec.Struct, frozen=True):
    """One GPU of one node."""

    index: int
    uuid: str
    model: str
    """A key of `MODELS`."""
    load: Load = Load.IDLE
    always: bool = False
    """Shows its load even when it was given to nobody: a process that no pod accounts for."""
    mig: bool = False
    user: str = ""
    """`namespace/pod/container`, if one was given it."""
    pid: int = 0


class Reading(msgspec.Struct, frozen=True):
    """What sensors would say."""

    utilization: int
    memory_mib: int
    temperature: int
    watts: float
    fan: int = 0


def node_gpus(node: str, count: int, model: str, loads: tuple[Load, ...] = ()) -> tuple[Gpu, ...]:
    """The GPUs of a node; their uuids follow from its name, so they are the same each time."""
    return tuple(
        Gpu(
            index,
            f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}",
            model,
            loads[index % len(loads)] if loads else Load.IDLE,
        )
        for index in range(count)
    )


def reading(gpu: Gpu, now: float) -> Reading:
    """What a GPU shows at a time. One that was given to nobody does nothing."""
    model = MODELS[gpu.model]
    # A little life, the same for everybody who looks in the same moment.
    sway = math.sin(now / 7 + gpu.index)
    load = gpu.load
    if load is Load.BURSTY:
        load = Load.BUSY if now % _BURST_SECONDS < _BURST_SECONDS / 2 else Load.RESERVED_IDLE
    if load is Load.IDLE:
        return Reading(0, 4, 31 + gpu.index % 3, round(model.watts * 0.14, 2))
    if load is Load.RESERVED_IDLE:
        return Reading(0, int(model.memory_mib * 0.62), 36, round(model.watts * 0.18, 2))
    used = int(model.memory_mib * 0.86)
    if load is Load.HOT:
        return Reading(99, used, 88 + round(sway), round(model.watts * 0.99, 2), 100)
    busy = 93 + round(5 * sway)
    return Reading(busy, used, 66 + round(3 * sway), round(model.watts * (0.8 + 0.05 * sway), 2))


def node_labels(gpus: tuple[Gpu, ...]) -> dict[str, str]:
    """NVIDIA's usual labels."""
    if not gpus:
        return {}
    model = MODELS[gpus[0].model]
    major, minor = model.capability.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(len(gpus)),
        "nvidia.com/gpu.product": model.name.replace(" ", "-"),
        "nvidia.com/gpu.memory": str(model.memory_mib),
        "nvidia.com/gpu.family": model.architecture,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.capable": "true" if model.architecture in ("ampere", "hopper") else "false",
        "nvidia.com/cuda.driver.major": "550",
    }
