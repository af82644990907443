"""GPUs that nobody offers, and GPUs that somebody has and does not use. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.render.human import size
from kvestigate.render.severity import Severity
from kvestigate.reports import gpu
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.reports.findings.pods import owner_of
from kvestigate.snapshot import listings
from kvestigate.snapshot.exporters import GpuReading
from kvestigate.snapshot.gpus import asked_for, at_work, occupied
from kvestigate.snapshot.snapshot import Snapshot

_IDLE_MILLIS = 10
"""Feeding a GPU takes more CPU than this."""


def not_offered(snapshot: Snapshot) -> Iterator[Finding]:
    offered = {
        name
        for node in snapshot.of(listings.NODES)
        for name, count in node.status.allocatable.items()
        if quantities.whole(count)
    }
    for consumer in snapshot.derived(gpu.collect).consumers:
        if consumer.resource not in offered:
            yield Finding(
                rule="gpu-not-offered",
                severity=Severity.CRITICAL,
                subject=Subject("Pod", consumer.pod, consumer.namespace),
                evidence=f"container {consumer.container} asks for {consumer.amount} "
                f"{consumer.resource}, which no node offers",
                why="the device plugin is missing or its GPUs are unhealthy",
                command="kvestigate report run gpu",
            )


@dataclass(slots=True)
class _Idle:
    pods: int = 0
    gpus: int = 0
    memory_mib: float = 0.0
    """Taken on them, as far as that is told."""
    first: str = ""
    """One of the pods, to look at."""


def idle_by_their_own_figures(snapshot: Snapshot) -> Iterator[Finding]:
    """GPUs of pods that the exporter saw doing nothing."""
    readings = snapshot.of(listings.GPU_READINGS)
    if not readings:
        return
    owners = {
        (pod.metadata.namespace, pod.metadata.name): owner_of(pod)
        for pod in snapshot.of(listings.PODS)
        if not pod.finished
    }
    by_pod: dict[tuple[str, str], list[GpuReading]] = {}
    for reading in readings:
        key = (reading.namespace, reading.pod)
        if key in owners:
            by_pod.setdefault(key, []).append(reading)
    found: dict[Subject, _Idle] = {}
    for (namespace, name), seen in by_pod.items():
        if not any(at_work(it.utilization) for it in seen):
            held = _note(found, owners[namespace, name], name, len(seen))
            held.memory_mib += sum(it.memory_used_mib or 0.0 for it in seen)
    for owner, held in _largest_first(found):
        taken = f", with {_memory(held.memory_mib)} of memory taken" if held.memory_mib else ""
        where = "it" if held.gpus == 1 else "all of them"
        yield _finding(
            owner,
            held,
            Severity.WARNING,
            f"{_said(held)}, and the GPU exporter saw 0% utilization on {where}{taken}",
        )


def held_by_nobody(snapshot: Snapshot) -> Iterator[Finding]:
    """GPUs in use that no pod was given: a process beside Kubernetes, or one that was left."""
    unexplained: dict[str, list[GpuReading]] = {}
    for reading in snapshot.of(listings.GPU_READINGS):
        if not reading.pod and occupied(reading.utilization, reading.memory_used_mib):
            unexplained.setdefault(reading.node, []).append(reading)
    for node in snapshot.derived(gpu.collect).nodes:
        seen = unexplained.get(node.node, [])
        # Where more are in use than are free, the exporter just does not tell whose they are.
        if not seen or node.sharing or len(seen) > node.free:
            continue
        each = "; ".join(f"GPU {it.index} ({it.uuid}) at {_use(it)}" for it in seen)
        yield Finding(
            rule="gpu-held-by-nobody",
            severity=Severity.WARNING,
            subject=Subject("Node", node.node),
            evidence=f"in use, and no pod was given it: {each}",
            why="the scheduler takes it for free, and whoever gets it finds it occupied",
            command=f"kvestigate describe node {node.node}",
        )


def idle_by_cpu(snapshot: Snapshot) -> Iterator[Finding]:
    """A hint, where no exporter tells of GPUs: a program that feeds one uses CPU, too."""
    if snapshot.of(listings.GPU_READINGS):
        return
    used = {
        (pod.metadata.namespace, pod.metadata.name): sum(
            quantities.millis(it.usage.get("cpu", "0")) for it in pod.containers
        )
        for pod in snapshot.of(listings.POD_METRICS)
        if pod.containers
    }
    found: dict[Subject, _Idle] = {}
    for pod in snapshot.of(listings.PODS):
        key = (pod.metadata.namespace, pod.metadata.name)
        if pod.status.phase != "Running" or used.get(key, _IDLE_MILLIS) >= _IDLE_MILLIS:
            continue
        gpus = sum(amount for _, _, amount in asked_for(pod))
        if gpus:
            _note(found, owner_of(pod), pod.metadata.name, gpus)
    for owner, held in _largest_first(found):
        yield _finding(
            owner,
            held,
            Severity.INFO,
            f"{_said(held)}, and used less than {_IDLE_MILLIS}m of CPU in the last window of "
            "metrics-server; that is a hint only, no figures of the GPUs were found",
        )


def _note(found: dict[Subject, _Idle], owner: Subject, pod: str, gpus: int) -> _Idle:
    held = found.setdefault(owner, _Idle(first=pod))
    held.pods += 1
    held.gpus += gpus
    return held


def _use(reading: GpuReading) -> str:
    taken = f" with {_memory(reading.memory_used_mib)} taken" if reading.memory_used_mib else ""
    return f"{reading.utilization:.0f}%{taken}"


def _memory(mib: float) -> str:
    return size(int(mib) * 1024 * 1024)


def _largest_first(found: dict[Subject, _Idle]) -> list[tuple[Subject, _Idle]]:
    return sorted(found.items(), key=lambda it: (-it[1].gpus, it[0].namespace, it[0].name))


def _said(held: _Idle) -> str:
    pods = "a pod of it has" if held.pods == 1 else f"{held.pods} pods of it have"
    return f"{pods} {held.gpus} {'GPU' if held.gpus == 1 else 'GPUs'}"


def _finding(owner: Subject, held: _Idle, severity: Severity, evidence: str) -> Finding:
    return Finding(
        rule="gpu-idle" if severity is Severity.WARNING else "gpu-idle-hint",
        severity=severity,
        subject=owner,
        evidence=evidence,
        why="nobody else can have what it holds and does not use",
        command=f"kvestigate exec {held.first} -n {owner.namespace} -- nvidia-smi",
    )


RULES = (
    Rule(
        "gpu-not-offered",
        "A pod asks for GPUs that no node offers.",
        gpu.REPORT.needs,
        not_offered,
    ),
    Rule(
        "gpu-idle",
        "A workload has GPUs and does not use them.",
        (listings.PODS, listings.GPU_READINGS),
        idle_by_their_own_figures,
    ),
    Rule(
        "gpu-held-by-nobody",
        "A GPU is in use, and no pod has it.",
        gpu.REPORT.needs,
        held_by_nobody,
    ),
    Rule(
        "gpu-idle-hint",
        "A workload has GPUs and hardly uses its CPUs.",
        (listings.PODS, listings.POD_METRICS, listings.GPU_READINGS),
        idle_by_cpu,
    ),
)
