"""PURE. Containers that use nearly all the memory they may, as metrics-server sees them."""

from __future__ import annotations

from collections.abc import Iterator

from kvestigate.kube import quantities
from kvestigate.observe import listings
from kvestigate.observe.snapshot import Snapshot
from kvestigate.render.human import size
from kvestigate.reports.findings.model import Finding, Rule, Severity, Subject

_NEAR = 0.9
"""From this share of its limit on, a container is a peak away from being killed."""


def near_their_limit(snapshot: Snapshot) -> Iterator[Finding]:
    limits = {
        (pod.metadata.namespace, pod.metadata.name, container.name): limit
        for pod in snapshot.of(listings.PODS)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        if (limit := quantities.whole(container.resources.limits.get("memory", "0")))
    }
    for pod in snapshot.of(listings.POD_METRICS):
        namespace, name = pod.metadata.namespace, pod.metadata.name
        for container in pod.containers:
            limit = limits.get((namespace, name, container.name), 0)
            used = quantities.whole(container.usage.get("memory", "0"))
            if limit and used >= limit * _NEAR:
                yield Finding(
                    rule="memory-near-limit",
                    severity=Severity.WARNING,
                    subject=Subject("Pod", name, namespace, container.name),
                    evidence=f"container {container.name} uses {size(used)} of {size(limit)} "
                    f"({used / limit:.0%})",
                    why="at its limit the kernel kills it",
                    command=f"kvestigate describe pod {name} -n {namespace}",
                )


RULES = (
    Rule(
        "memory-near-limit",
        "A container uses nearly all the memory it may.",
        (listings.PODS, listings.POD_METRICS),
        near_their_limit,
    ),
)
