"""Containers close to their memory or CPU limit, by metrics-server. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.kube import quantities
from kvestigate.render.human import cores, size
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

_NEAR = 0.9
"""A container that uses this share of its memory limit may exceed it at the next peak."""
_FULL = 0.95
"""Usage is an average: a container that is throttled shows a little less than its limit."""


@rule(
    "memory-near-limit",
    "A container is close to its memory limit.",
    listings.PODS,
    listings.POD_METRICS,
)
def memory_near_limit(cluster: Cluster) -> Iterator[Fault]:
    for subject, used, limit in _used_and_limit(cluster, "memory", quantities.whole):
        if used >= limit * _NEAR:
            evidence = f"{size(used)} of its {size(limit)} memory limit"
            why = "A container that exceeds its memory limit is OOM-killed."
            yield _finding(subject, evidence, used / limit, why)


@rule(
    "cpu-limit", "A container is throttled at its CPU limit.", listings.PODS, listings.POD_METRICS
)
def cpu_at_limit(cluster: Cluster) -> Iterator[Fault]:
    for subject, used, limit in _used_and_limit(cluster, "cpu", quantities.millis):
        if used >= limit * _FULL:
            evidence = f"{cores(used / 1000)} of its {cores(limit / 1000)} CPU limit"
            why = "The container is throttled, so it responds slowly."
            yield _finding(subject, evidence, used / limit, why)


def _finding(subject: Subject, evidence: str, share: float, why: str) -> Fault:
    return Fault(
        severity=Severity.WARNING,
        subject=subject,
        evidence=f"Container {subject.container} uses {evidence} ({share * 100:.0f} %).",
        why=why,
        command=f"kvestigate describe pod {subject.name} -n {subject.namespace}",
    )


def _used_and_limit(
    cluster: Cluster, resource: str, amount: Callable[[str], int]
) -> Iterator[tuple[Subject, int, int]]:
    """Every measured container that has a limit, with its usage and its limit."""
    pods = {(pod.metadata.namespace, pod.metadata.name): pod for pod in cluster.of(listings.PODS)}
    for measured in cluster.of(listings.POD_METRICS):
        key = namespace, name = measured.metadata.namespace, measured.metadata.name
        if key not in pods:
            continue
        spec = pods[key].spec
        containers = spec.all_containers
        limits = {container.name: container.resources.limits for container in containers}
        for usage in measured.containers:
            limit = amount(limits.get(usage.name, {}).get(resource, "0"))
            if limit:
                used = amount(usage.usage.get(resource, "0"))
                yield Subject("Pod", name, namespace, usage.name), used, limit


RULES = (
    memory_near_limit,
    cpu_at_limit,
)
