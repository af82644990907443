"""PURE. GPUs that nobody offers, and GPUs that somebody has and does not use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvestigate.kube import quantities
from kvestigate.observe import listings
from kvestigate.observe.gpus import asked_for
from kvestigate.observe.snapshot import Snapshot
from kvestigate.reports import gpu
from kvestigate.reports.findings.model import Finding, Rule, Severity, Subject
from kvestigate.reports.findings.pods import owner_of

_IDLE_MILLIS = 10
"""Feeding a GPU takes more CPU than this."""
_IDLE_PERCENT = 1


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
    busy: set[tuple[str, str]] = set()
    idle: dict[tuple[str, str], int] = {}
    for reading in readings:
        key = (reading.namespace, reading.pod)
        if key not in owners:
            continue
        if reading.utilization >= _IDLE_PERCENT:
            busy.add(key)
        idle[key] = idle.get(key, 0) + 1
    found: dict[Subject, _Idle] = {}
    for (namespace, name), gpus in idle.items():
        if (namespace, name) not in busy:
            _note(found, owners[namespace, name], name, gpus)
    for owner, held in found.items():
        yield _finding(
            owner,
            held,
            Severity.WARNING,
            f"{_said(held)}, and the GPU exporter saw 0% utilization on all of them",
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
    for owner, held in found.items():
        yield _finding(
            owner,
            held,
            Severity.INFO,
            f"{_said(held)}, and used less than {_IDLE_MILLIS}m of CPU in the last window of "
            "metrics-server; that is a hint only, no figures of the GPUs were found",
        )


def _note(found: dict[Subject, _Idle], owner: Subject, pod: str, gpus: int) -> None:
    held = found.setdefault(owner, _Idle(first=pod))
    held.pods += 1
    held.gpus += gpus


def _said(held: _Idle) -> str:
    pods = "a pod of it has" if held.pods == 1 else f"{held.pods} pods of it have"
    return f"{pods} {held.gpus} {'GPU' if held.gpus == 1 else 'GPUs'}"


def _finding(owner: Subject, held: _Idle, severity: Severity, evidence: str) -> Finding:
    return Finding(
        rule="gpu-idle" if severity is Severity.WARNING else "gpu-idle-hint",
        severity=severity,
        subject=owner,
        evidence=evidence,
        why="nobody else can have them while it does",
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
        "gpu-idle-hint",
        "A workload has GPUs and hardly uses its CPUs.",
        (listings.PODS, listings.POD_METRICS, listings.GPU_READINGS),
        idle_by_cpu,
    ),
)
