"""The totals over the windows of all nodes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from kvestigate.optimize.activity import Activity, NodeWindow, Readiness, Verdict
from kvestigate.optimize.energy import Power, power


@dataclass(frozen=True, slots=True)
class Recoverable:
    """The GPUs and memory of reserved-idle nodes."""

    nodes: tuple[str, ...]
    gpus: int
    """Allocated GPUs."""
    memory_mib: float
    memory_total_mib: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Of all GPUs of the fleet, as far as they report a value."""

    allocated: int
    capacity: int
    reporting: int
    """GPUs that report their utilization; those with MIG do not."""
    reporting_nodes: int
    measured: int
    """GPUs that answered at all."""
    mean_utilization: float | None
    memory_mib: float
    memory_total_mib: float
    activity: dict[str, int]
    """Activity -> number of GPUs; only activities that occur."""
    power: Power
    verdicts: dict[str, int]
    """Verdict -> number of nodes."""
    readiness: dict[str, int]
    """Readiness -> number of nodes that are not active."""
    recoverable: Recoverable


def summarize(nodes: Sequence[NodeWindow]) -> Summary:
    gpus = [gpu for node in nodes for gpu in node.gpus]
    tally = Counter(gpu.activity for gpu in gpus)
    verdicts = Counter(node.verdict for node in nodes)
    ready = Counter(node.readiness for node in nodes)
    means = [gpu.mean for gpu in gpus if gpu.mean is not None]
    return Summary(
        allocated=sum(node.stated for node in nodes),
        capacity=sum(node.capacity for node in nodes),
        reporting=sum(gpu.reporting for gpu in gpus),
        reporting_nodes=sum(any(gpu.reporting for gpu in node.gpus) for node in nodes),
        measured=len(gpus),
        mean_utilization=fmean(means) if means else None,
        memory_mib=sum(gpu.memory_mib for gpu in gpus),
        memory_total_mib=sum(gpu.memory_total_mib for gpu in gpus),
        activity={activity.value: tally[activity] for activity in Activity if tally[activity]},
        power=power(gpus),
        verdicts={verdict.value: verdicts[verdict] for verdict in Verdict},
        readiness={readiness.value: ready[readiness] for readiness in Readiness},
        recoverable=_recoverable(nodes),
    )


def _recoverable(nodes: Sequence[NodeWindow]) -> Recoverable:
    reserved = [node for node in nodes if node.readiness is Readiness.RESERVED_IDLE]
    return Recoverable(
        nodes=tuple(node.node for node in reserved),
        gpus=sum(node.stated for node in reserved),
        memory_mib=sum(gpu.memory_mib for node in reserved for gpu in node.gpus),
        memory_total_mib=sum(gpu.memory_total_mib for node in reserved for gpu in node.gpus),
    )
