"""Containers without resource requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvestigate.health.cluster import Cluster
from kvestigate.health.model import Fault, Subject
from kvestigate.health.rule import rule
from kvestigate.render.severity import Severity
from kvestigate.snapshot import listings

_CHANGEABLE = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "CronJob")
"""Workloads whose pod template can be changed."""


@rule("no-requests", "A container has no resource requests.", listings.PODS)
def without_requests(cluster: Cluster) -> Iterator[Fault]:
    """One finding for each workload, because its pods share a template."""
    reported: set[Subject] = set()
    for pod in cluster.pods:
        if pod.spec.resources is not None:
            continue
        bare = [
            container.name for container in pod.spec.containers if not container.resources.requests
        ]
        owner = cluster.workload(pod) if bare else None
        if owner is not None and owner not in reported:
            reported.add(owner)
            yield Fault(
                severity=Severity.INFO,
                subject=owner,
                evidence=f"{_containers(bare)} no resource requests.",
                why="The scheduler counts these containers as 0, and the kubelet evicts the pods "
                "first when the node runs out of memory.",
                command=_request_something(owner, pod.metadata.namespace),
            )


def _containers(names: Sequence[str]) -> str:
    """`Container web has`, `Containers web, proxy have`"""
    if len(names) == 1:
        return f"Container {names[0]} has"
    return f"Containers {', '.join(names)} have"


def _request_something(owner: Subject, namespace: str) -> str:
    """A pod without a controller cannot be changed, nor can the template of a Job."""
    kind = owner.kind.lower()
    if owner.kind not in _CHANGEABLE:
        return f"kvestigate describe {kind} {owner.name} -n {namespace}"
    return (
        f"kubectl -n {namespace} set resources {kind}/{owner.name} --requests=cpu=100m,memory=128Mi"
    )


RULES = (without_requests,)
