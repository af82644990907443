"""The activity of GPUs in a window of readings, and the verdict on their node. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from kvestigate.optimize.model import GpuNode
from kvestigate.optimize.smi import Reading

HELD_MIB = 1024
"""A GPU without a loaded program uses far less memory."""
SIGNAL = 1.0
"""Percent of time with compute or memory traffic that counts as work."""
ACTIVE_FROM = 30.0
SATURATED_FROM = 90.0
POWER_SIGNAL = 0.5
"""The share of its power limit that no GPU draws just for a loaded model."""
BURST = 20.0
"""A GPU is bursty if its highest reading is this many percentage points above its mean."""


class Activity(enum.Enum):
    """In rising order: a node has the highest activity of its GPUs."""

    IDLE = "idle"
    RESERVED_IDLE = "reserved-idle"
    """GPU memory is in use, but nothing computes."""
    LIGHT = "light"
    ACTIVE = "active"
    SATURATED = "saturated"


PRODUCTIVE = (Activity.LIGHT, Activity.ACTIVE, Activity.SATURATED)
_RANK = {activity: rank for rank, activity in enumerate(Activity)}


class Verdict(enum.Enum):
    GHOST = "ghost"
    """GPUs are allocated, but the mean of all readings is below the threshold."""
    ACTIVE = "active"
    NO_ALLOCATION = "no-allocation"
    NO_SAMPLES = "no-samples"


class Readiness(enum.Enum):
    """How far a node that is not active is ready to be drained."""

    IDLE = "idle"
    RESERVED_IDLE = "reserved-idle"
    RESERVED_ACTIVE = "reserved-active"


@dataclass(frozen=True, slots=True)
class GpuWindow:
    """One GPU over all rounds."""

    index: int
    uuid: str
    utilization: tuple[float, ...]
    """Percent, one value for each round that reported it."""
    mean: float | None
    """None if the GPU never reported its utilization; sums leave it out."""
    max: float | None
    min: float | None
    memory_traffic: float | None
    memory_mib: float
    """The mean of the rounds, as are power and memory traffic."""
    memory_total_mib: float
    watts: float | None
    limit_watts: float | None
    temperature: float | None
    """The highest."""
    activity: Activity | None
    bursty: bool

    @property
    def reporting(self) -> bool:
        return self.mean is not None


@dataclass(frozen=True, slots=True)
class NodeWindow:
    node: str
    stated: int
    """Allocated GPUs."""
    capacity: int
    pods: tuple[str, ...]
    """`namespace/name` of the pods that hold them."""
    gpus: tuple[GpuWindow, ...]
    mean: float | None
    """The mean of all readings of all GPUs of the node."""
    max: float | None
    verdict: Verdict
    confident: bool
    """A ghost with every reading of several rounds below the threshold."""
    activity: Activity | None
    readiness: Readiness | None
    """Of nodes that are not active."""
    problem: str
    """Why readings are missing; empty if none is."""


def gpu_window(rounds: Sequence[Reading]) -> GpuWindow:
    """The window of one GPU, from one or more readings."""
    first = rounds[0]
    used = tuple(reading.utilization for reading in rounds if reading.utilization is not None)
    mean = fmean(used) if used else None
    traffic = _mean(reading.memory_traffic for reading in rounds)
    memory = _mean(reading.memory_mib for reading in rounds) or 0.0
    watts, limit = (
        _mean(reading.watts for reading in rounds),
        _mean(reading.limit_watts for reading in rounds),
    )
    return GpuWindow(
        index=first.index,
        uuid=first.uuid,
        utilization=used,
        mean=mean,
        max=max(used, default=None),
        min=min(used, default=None),
        memory_traffic=traffic,
        memory_mib=memory,
        memory_total_mib=_mean(reading.memory_total_mib for reading in rounds) or 0.0,
        watts=watts,
        limit_watts=limit,
        temperature=max(
            (reading.temperature for reading in rounds if reading.temperature is not None),
            default=None,
        ),
        activity=None if mean is None else _activity(mean, traffic, memory, watts, limit),
        bursty=mean is not None and max(used) - mean > BURST,
    )


def _activity(
    utilization: float,
    traffic: float | None,
    memory: float,
    watts: float | None,
    limit: float | None,
) -> Activity:
    if utilization >= SATURATED_FROM:
        return Activity.SATURATED
    if utilization >= ACTIVE_FROM:
        return Activity.ACTIVE
    drawn = watts / limit if watts is not None and limit else 0.0
    if utilization >= SIGNAL or (traffic or 0.0) >= SIGNAL or drawn >= POWER_SIGNAL:
        return Activity.LIGHT
    return Activity.RESERVED_IDLE if memory >= HELD_MIB else Activity.IDLE


def node_window(
    node: GpuNode, rounds: Sequence[Sequence[Reading]], threshold: float, problem: str = ""
) -> NodeWindow:
    """`rounds` has the readings of each successful round; `threshold` is a share from 0 to 1."""
    by_gpu: dict[int, list[Reading]] = {}
    for readings in rounds:
        for reading in readings:
            by_gpu.setdefault(reading.index, []).append(reading)
    gpus = tuple(gpu_window(by_gpu[index]) for index in sorted(by_gpu))
    every = [percent for gpu in gpus for percent in gpu.utilization]
    mean = fmean(every) if every else None
    verdict = _verdict(node.stated, mean, threshold)
    highest = max(
        (gpu.activity for gpu in gpus if gpu.activity is not None),
        key=_RANK.__getitem__,
        default=None,
    )
    return NodeWindow(
        node=node.name,
        stated=node.stated,
        capacity=node.capacity,
        pods=tuple(sorted(pod.path for pod in node.pods)),
        gpus=gpus,
        mean=mean,
        max=max(every, default=None),
        verdict=verdict,
        confident=verdict is Verdict.GHOST
        and len(rounds) > 1
        and all(percent / 100 < threshold for percent in every),
        activity=highest,
        readiness=_readiness(verdict, highest),
        problem=problem or ("" if every else _why_unknown(gpus)),
    )


def _verdict(stated: int, mean: float | None, threshold: float) -> Verdict:
    if mean is None:
        return Verdict.NO_SAMPLES
    if not stated:
        return Verdict.NO_ALLOCATION
    return Verdict.GHOST if mean / 100 < threshold else Verdict.ACTIVE


def _readiness(verdict: Verdict, highest: Activity | None) -> Readiness | None:
    if verdict not in (Verdict.GHOST, Verdict.NO_ALLOCATION) or highest is None:
        return None
    if highest in PRODUCTIVE:
        return Readiness.RESERVED_ACTIVE
    return Readiness.IDLE if highest is Activity.IDLE else Readiness.RESERVED_IDLE


def _why_unknown(gpus: Sequence[GpuWindow]) -> str:
    if not gpus:
        return "nvidia-smi lists no GPUs"
    return "utilization: unknown (its GPUs do not report it, as with MIG)"


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
