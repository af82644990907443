"""Something is paid for that nobody uses."""

from __future__ import annotations

from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import (
    claim,
    containers,
    deployment,
    named,
    service,
)
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import Score, absent, all_of, available, holds, mean


def _modest(obj: Object) -> bool:
    asked = containers(obj)[0].get("resources", {}).get("requests", {}).get("cpu", "")
    return _cpus(asked) <= 0.5


def _cpus(text: str) -> float:
    if not text:
        return float("inf")  # nothing is promised to a container that asks for nothing
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def kept(score: Score, resource: str, name: str) -> Score:
    """The score, as long as something else is still there."""

    def both(snapshot: Snapshot) -> float:
        there = snapshot.find(resource, name, "default") is not None
        return score(snapshot) if there else 0.0

    return both


TASKS = (
    Task(
        "cost-requests",
        "cost",
        "The Deployment web in the namespace default requests 4 CPUs for each replica and uses "
        "less than half of one. Let it request at most 500m, at least something, and keep "
        "both replicas running.",
        [deployment("web", replicas=2, requests={"cpu": "4"})],
        all_of(holds("deployments", "web", "default", _modest), available("deployments", "web")),
        [
            actions.apply(deployment("web", replicas=2, requests={"cpu": "500m"})),
            actions.WAIT,
            actions.WAIT,
        ],
    ),
    Task(
        "cost-leftovers",
        "cost",
        "In the namespace default the claims old-data and scratch are used by no pod. Delete "
        "them; the claim data is needed.",
        [claim("old-data"), claim("scratch"), claim("data")],
        kept(
            mean(
                absent("persistentvolumeclaims", "old-data"),
                absent("persistentvolumeclaims", "scratch"),
            ),
            "persistentvolumeclaims",
            "data",
        ),
        [
            actions.delete(named("v1", "PersistentVolumeClaim", "old-data", "default")),
            actions.delete(named("v1", "PersistentVolumeClaim", "scratch", "default")),
        ],
    ),
    Task(
        "cost-load-balancer",
        "cost",
        "The Service internal in the namespace default has a load balancer of its own, though only "
        "pods use it. Make it an ordinary one, for the same pods.",
        [deployment("internal"), service("internal", {"app": "internal"}, type="LoadBalancer")],
        holds(
            "services",
            "internal",
            "default",
            lambda obj: (
                obj["spec"]["type"] == "ClusterIP"
                and obj["spec"].get("selector") == {"app": "internal"}
            ),
        ),
        [
            actions.patch(
                named("v1", "Service", "internal", "default") | {"spec": {"type": "ClusterIP"}}
            )
        ],
    ),
)
