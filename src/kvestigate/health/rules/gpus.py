"""GPUs that no node has, GPUs that are held and idle, and GPUs used outside Kubernetes. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Profile, Subject
from kvestigate.health.rule import rule
from kvestigate.kube import quantities
from kvestigate.render.human import counted, size
from kvestigate.render.severity import Severity
from kvestigate.reports import gpu
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.gpus import at_work, gpu_requests, occupied
from kvestigate.snapshot.ledger.hosts import node_gpus

_IDLE_MILLIS = 10
"""A program that feeds a GPU uses more CPU than this."""


@rule(
    "gpu-not-offered",
    "A pod requests GPUs that no node has.",
    *gpu.REPORT.needs,
)
def not_offered(cluster: Cluster) -> Iterator[Fault]:
    offered = {
        name
        for node in cluster.of(listings.NODES)
        for name, count in node.status.allocatable.items()
        if quantities.whole(count)
    }
    for consumer in cluster.snapshot.derived(gpu.collect).consumers or ():
        if consumer.resource not in offered:
            yield Fault(
                severity=Severity.CRITICAL,
                subject=Subject("Pod", consumer.pod, consumer.namespace),
                evidence=f"Container {consumer.container} requests {consumer.amount} "
                f"{consumer.resource}, but no node has allocatable {consumer.resource}.",
                why="The device plugin is not running, or its GPUs are unhealthy.",
                command="kvestigate report run gpu",
                causes=_without_gpus(cluster),
                alike=consumer.resource,
            )


def _without_gpus(cluster: Cluster) -> tuple[Subject, ...]:
    """The nodes that should have GPUs and offer none."""
    return tuple(
        Subject("Node", node.metadata.name)
        for node in cluster.of(listings.NODES)
        if node_gpus(node, {}) is not None
    )


@dataclass(slots=True)
class _Idle:
    """The idle pods of one workload and the GPUs that they hold."""

    pods: int = 0
    gpus: int = 0
    memory_mib: float = 0.0
    """GPU memory in use, of the GPUs whose memory is measured."""

    def add(self, gpus: int, memory_mib: float = 0.0) -> None:
        self.pods += 1
        self.gpus += gpus
        self.memory_mib += memory_mib

    def holds(self, pods: int) -> str:
        """`13 of 16 pods hold 13 GPUs`, of a workload that has `pods`."""
        subject = counted(self.pods, "pod") if self.pods == pods else f"{self.pods} of {pods} pods"
        return f"{subject} {'holds' if self.pods == 1 else 'hold'} {counted(self.gpus, 'GPU')}"


@rule(
    "gpu-idle",
    "A workload holds GPUs at 0 % utilization.",
    listings.PODS,
    listings.GPU_READINGS,
    profile=Profile.COST,
)
def idle_by_utilization(cluster: Cluster) -> Iterator[Fault]:
    """Pods all of whose GPUs the exporter measured at 0 % utilization."""
    readings = cluster.of(listings.GPU_READINGS)
    if not readings:
        return
    owners = {
        (pod.metadata.namespace, pod.metadata.name): cluster.workload(pod)
        for pod in cluster.of(listings.PODS)
        if not pod.finished
    }
    by_pod: dict[tuple[str, str], list[GpuReading]] = {}
    for reading in readings:
        key = (reading.namespace, reading.pod)
        if key in owners:
            by_pod.setdefault(key, []).append(reading)
    idle: dict[Subject, _Idle] = {}
    for (namespace, name), own in by_pod.items():
        if not any(at_work(reading.utilization) for reading in own):
            memory = sum(reading.memory_used_mib or 0.0 for reading in own)
            idle.setdefault(owners[namespace, name], _Idle()).add(len(own), memory)
    pods = Counter(owners.values())
    for owner, held in _largest_first(idle):
        loaded = f"; {_memory(held.memory_mib)} GPU memory is loaded" if held.memory_mib else ""
        yield _finding(
            owner,
            Severity.WARNING,
            f"{held.holds(pods[owner])} at 0 % utilization{loaded}.",
        )


@rule("gpu-held-by-nobody", "A GPU is in use but not allocated to any pod.", *gpu.REPORT.needs)
def used_outside_kubernetes(cluster: Cluster) -> Iterator[Fault]:
    """GPUs in use without a pod: by a process outside Kubernetes, or one left by an old pod."""
    without_pod: dict[str, list[GpuReading]] = {}
    for reading in cluster.of(listings.GPU_READINGS):
        if not reading.pod and occupied(reading.utilization, reading.memory_used_mib):
            without_pod.setdefault(reading.node, []).append(reading)
    for node in cluster.snapshot.derived(gpu.collect).nodes or ():
        own = without_pod.get(node.node, [])
        # More GPUs in use than are free: the exporter does not know the pods of the others.
        if not own or node.sharing or len(own) > (node.free or 0):
            continue
        yield Fault(
            severity=Severity.WARNING,
            subject=Subject("Node", node.node),
            evidence=" ".join(
                f"GPU {reading.index} ({reading.uuid}) on {node.node} {_use(reading)} but is not "
                "allocated to any pod."
                for reading in own
            ),
            why="The scheduler counts the GPU as free: a pod that gets it may run out of GPU "
            "memory.",
            command=f"kvestigate describe node {node.node}",
        )


@rule(
    "gpu-idle-hint",
    "A workload holds GPUs and uses almost no CPU.",
    listings.PODS,
    listings.POD_METRICS,
    listings.GPU_READINGS,
    profile=Profile.COST,
)
def idle_by_cpu(cluster: Cluster) -> Iterator[Fault]:
    """A hint for clusters without a GPU exporter: a program that feeds a GPU uses CPU."""
    if cluster.of(listings.GPU_READINGS):
        return
    used = {
        (pod.metadata.namespace, pod.metadata.name): sum(
            quantities.millis(container.usage.get("cpu", "0")) for container in pod.containers
        )
        for pod in cluster.of(listings.POD_METRICS)
        if pod.containers
    }
    idle: dict[Subject, _Idle] = {}
    for pod in cluster.of(listings.PODS):
        key = (pod.metadata.namespace, pod.metadata.name)
        if pod.status.phase != "Running" or used.get(key, _IDLE_MILLIS) >= _IDLE_MILLIS:
            continue
        gpus = sum(amount for _, _, amount in gpu_requests(pod))
        if gpus:
            idle.setdefault(cluster.workload(pod), _Idle()).add(gpus)
    for owner, held in _largest_first(idle):
        pods = sum(not pod.finished for pod in cluster.pods_of(owner))
        yield _finding(
            owner,
            Severity.INFO,
            f"{held.holds(pods)} at less than {_IDLE_MILLIS}m CPU per pod. "
            "GPU utilization: unknown (no GPU exporter answered).",
        )


def _use(reading: GpuReading) -> str:
    utilization = f"{reading.utilization:.0f} % utilization"
    if not reading.memory_used_mib:
        return f"is at {utilization}"
    in_use = f"has {_memory(reading.memory_used_mib)} in use"
    return f"{in_use} at {utilization}" if at_work(reading.utilization) else in_use


def _memory(mib: float) -> str:
    return size(int(mib) * 1024 * 1024)


def _largest_first(idle: dict[Subject, _Idle]) -> list[tuple[Subject, _Idle]]:
    return sorted(idle.items(), key=lambda item: (-item[1].gpus, item[0].namespace, item[0].name))


def _finding(owner: Subject, severity: Severity, evidence: str) -> Fault:
    return Fault(
        severity=severity,
        subject=owner,
        evidence=evidence,
        why="Other workloads cannot use these GPUs.",
        command="kvestigate optimize probe-gpu --live --samples 3",
    )


RULES = (
    not_offered,
    idle_by_utilization,
    used_outside_kubernetes,
    idle_by_cpu,
)
