"""Scores of a snapshot: numbers from 0 to 1 to build rewards from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kvestigate_client.results import Object, Snapshot

Score = Callable[[Snapshot], float]


def available(resource: str, name: str, namespace: str = "default", *, replicas: int = 1) -> Score:
    """How much of a Deployment, StatefulSet or ReplicaSet is ready, as its spec is now.

    Pods of an earlier spec do not count. `replicas` is how many there have to be: to want fewer
    makes nothing better.
    """

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find(resource, name, namespace)
        if found is None:
            return 0.0
        wanted = found.get("spec", {}).get("replicas", 1)
        # A ReplicaSet has but one spec.
        count = _ready(found) if resource.startswith("replicasets") else ready(found)
        return min(1.0, count / max(wanted, replicas)) if wanted else 0.0

    return score


def ready(workload: Object) -> int:
    """How many ready pods of its present spec a Deployment or StatefulSet has."""
    status = workload.get("status") or {}
    outdated = status.get("replicas", 0) - status.get("updatedReplicas", 0)
    return max(0, _ready(workload) - int(outdated))


def _ready(workload: Object) -> int:
    status = workload.get("status") or {}
    if status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0):
        return 0  # nobody has looked at the spec yet
    return int(status.get("readyReplicas", 0))


def running(labels: Mapping[str, str], namespace: str = "default", *, at_least: int = 1) -> Score:
    """How many of the pods that were hoped for run and are ready."""

    def score(snapshot: Snapshot) -> float:
        pods = snapshot.items("pods", namespace)
        matching = [pod for pod in pods if labels.items() <= _labels(pod).items()]
        return min(1.0, sum(map(_is_ready, matching)) / at_least)

    return score


def absent(resource: str, name: str, namespace: str | None = None) -> Score:
    """1 when there is no such object."""
    return lambda snapshot: float(snapshot.find(resource, name, namespace) is None)


def holds(resource: str, name: str, namespace: str | None, met: Callable[[Object], bool]) -> Score:
    """1 when there is such an object and `met` holds for it."""

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find(resource, name, namespace)
        return float(found is not None and met(found))

    return score


def all_of(*scores: Score) -> Score:
    """As good as the worst of them."""
    return lambda snapshot: min(score(snapshot) for score in scores)


def mean(*scores: Score) -> Score:
    return lambda snapshot: sum(score(snapshot) for score in scores) / len(scores)


def weighted(scores: Iterable[tuple[float, Score]]) -> Score:
    """Each by its share of all weights."""
    parts = list(scores)
    total = sum(weight for weight, _ in parts)
    return lambda snapshot: sum(weight * score(snapshot) for weight, score in parts) / total


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
