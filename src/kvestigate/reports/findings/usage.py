"""Containers that use all that they may, as metrics-server sees them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvestigate.kube import quantities
from kvestigate.render.human import cores, size
from kvestigate.render.severity import Severity
from kvestigate.reports.findings.model import Finding, Rule, Subject
from kvestigate.snapshot import listings
from kvestigate.snapshot.snapshot import Snapshot

_NEAR = 0.9
"""From this share of its memory limit on, a container is a peak away from being killed."""
_FULL = 0.95
"""Usage is an average: a container that is held at its CPU limit shows a little less."""


def near_their_limit(snapshot: Snapshot) -> Iterator[Finding]:
    for subject, used, limit in _used_and_limit(snapshot, "memory", quantities.whole):
        if used >= limit * _NEAR:
            yield Finding(
                rule="memory-near-limit",
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"container {subject.container} uses {size(used)} of {size(limit)} "
                f"({used / limit:.0%})",
                why="at its limit the kernel kills it",
                command=f"kvestigate describe pod {subject.name} -n {subject.namespace}",
            )


def held_at_their_limit(snapshot: Snapshot) -> Iterator[Finding]:
    for subject, used, limit in _used_and_limit(snapshot, "cpu", quantities.millis):
        if used >= limit * _FULL:
            yield Finding(
                rule="cpu-limit",
                severity=Severity.WARNING,
                subject=subject,
                evidence=f"container {subject.container} uses {cores(used / 1000)} of the "
                f"{cores(limit / 1000)} CPUs it may ({used / limit:.0%})",
                why="it is made to wait for the rest of each tenth of a second, so it answers late",
                command=f"kvestigate describe pod {subject.name} -n {subject.namespace}",
            )


def _used_and_limit(
    snapshot: Snapshot, resource: str, amount: Callable[[str], int]
) -> Iterator[tuple[Subject, int, int]]:
    """Of each container that has a limit and is measured."""
    pods = {(pod.metadata.namespace, pod.metadata.name): pod for pod in snapshot.of(listings.PODS)}
    for measured in snapshot.of(listings.POD_METRICS):
        key = namespace, name = measured.metadata.namespace, measured.metadata.name
        if key not in pods:
            continue
        spec = pods[key].spec
        limits = {it.name: it.resources.limits for it in (*spec.init_containers, *spec.containers)}
        for container in measured.containers:
            limit = amount(limits.get(container.name, {}).get(resource, "0"))
            if limit:
                used = amount(container.usage.get(resource, "0"))
                yield Subject("Pod", name, namespace, container.name), used, limit


RULES = (
    Rule(
        "memory-near-limit",
        "A container uses nearly all the memory it may.",
        (listings.PODS, listings.POD_METRICS),
        near_their_limit,
    ),
    Rule(
        "cpu-limit",
        "A container uses all the CPU it may.",
        (listings.PODS, listings.POD_METRICS),
        held_at_their_limit,
    ),
)
