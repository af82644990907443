"""What containers use, from what their kubelet counted at two moments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

_SHORTEST = 0.05
"""Seconds: an average over less is noise."""


class _Cpu(msgspec.Struct, rename="camel"):
    usage_core_nano_seconds: int = 0


class _Memory(msgspec.Struct, rename="camel"):
    working_set_bytes: int = 0


class _Container(msgspec.Struct, rename="camel"):
    name: str
    start_time: datetime
    cpu: _Cpu = msgspec.field(default_factory=_Cpu)
    memory: _Memory = msgspec.field(default_factory=_Memory)


class _PodReference(msgspec.Struct):
    name: str
    namespace: str


class _Pod(msgspec.Struct, rename="camel"):
    pod_ref: _PodReference
    containers: list[_Container] = msgspec.field(default_factory=list)


class Summary(msgspec.Struct, rename="camel"):
    """The part of a kubelet's `/stats/summary` that matters here."""

    pods: list[_Pod] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Counted:
    """What a container had used by a moment."""

    at: float
    began: float
    """When this run of it started: another start is another count."""
    cpu_nanos: int


Counts = Mapping[tuple[str, str, str], Counted]
"""By namespace, pod and container."""


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    name: str
    nano_cores: int
    memory: int
    window: float
    """Seconds that the average of the cores is over."""

    def shown(self) -> dict[str, Any]:
        return {"name": self.name, "usage": amounts(self.nano_cores, self.memory)}


@dataclass(frozen=True, slots=True)
class NodeUsage:
    at: float
    pods: Mapping[tuple[str, str], tuple[ContainerUsage, ...]]
    """By namespace and name."""
    counts: Counts
    """To hold the next summary against."""


def usage(summary: Summary, before: Counts, now: float) -> NodeUsage:
    """Averages since the last summary, or since the start of what was not in it."""
    pods: dict[tuple[str, str], tuple[ContainerUsage, ...]] = {}
    counts: dict[tuple[str, str, str], Counted] = {}
    for pod in summary.pods:
        where = (pod.pod_ref.namespace, pod.pod_ref.name)
        containers = []
        for container in pod.containers:
            key = (*where, container.name)
            counted = Counted(
                now, container.start_time.timestamp(), container.cpu.usage_core_nano_seconds
            )
            counts[key] = counted
            containers.append(_container(container, counted, before.get(key)))
        pods[where] = tuple(containers)
    return NodeUsage(now, pods, counts)


def _container(container: _Container, now: Counted, before: Counted | None) -> ContainerUsage:
    if before is None or before.began != now.began or before.cpu_nanos > now.cpu_nanos:
        before = Counted(now.began, now.began, 0)
    window = max(now.at - before.at, _SHORTEST)
    nano_cores = round((now.cpu_nanos - before.cpu_nanos) / window)
    return ContainerUsage(container.name, nano_cores, container.memory.working_set_bytes, window)


def node_metrics(name: str, labels: Mapping[str, str], used: NodeUsage) -> dict[str, Any]:
    containers = [container for pod in used.pods.values() for container in pod]
    cores, memory = _sums(containers)
    return {
        "metadata": _metadata({"name": name}, labels, used.at),
        **_times(containers, used.at),
        "usage": amounts(cores, memory),
    }


def pod_metrics(
    namespace: str, name: str, labels: Mapping[str, str], used: NodeUsage
) -> dict[str, Any]:
    containers = used.pods[namespace, name]
    return {
        "metadata": _metadata({"name": name, "namespace": namespace}, labels, used.at),
        **_times(containers, used.at),
        "containers": [container.shown() for container in containers],
    }


def amounts(nano_cores: int, memory: int) -> dict[str, str]:
    return {"cpu": f"{nano_cores}n" if nano_cores else "0", "memory": f"{memory // 1024}Ki"}


def _sums(containers: Iterable[ContainerUsage]) -> tuple[int, int]:
    cores = memory = 0
    for container in containers:
        cores, memory = cores + container.nano_cores, memory + container.memory
    return cores, memory


def _metadata(named: dict[str, str], labels: Mapping[str, str], at: float) -> dict[str, Any]:
    labelled = {"labels": dict(labels)} if labels else {}
    return {**named, "creationTimestamp": _stamp(at), **labelled}


def _times(containers: Iterable[ContainerUsage], at: float) -> dict[str, str]:
    window = max((container.window for container in containers), default=0.0)
    return {"timestamp": _stamp(at), "window": f"{window:.3f}s"}


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
