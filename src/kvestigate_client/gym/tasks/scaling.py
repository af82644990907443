"""There is too little of something, or too much."""

from __future__ import annotations

from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import deployment, named
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import Score, all_of, holds


def grown(name: str, start: int, wanted: int) -> Score:
    """How far a Deployment has come from `start` ready replicas to `wanted`."""

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find("deployments", name, "default")
        ready = 0 if found is None else found.get("status", {}).get("readyReplicas", 0)
        return max(0.0, min(1.0, (ready - start) / (wanted - start)))

    return score


def gone(name: str) -> Score:
    """1 when a Deployment is there and has no pods any more."""

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find("deployments", name, "default")
        pods = [
            pod
            for pod in snapshot.items("pods", "default")
            if (pod["metadata"].get("labels") or {}).get("app") == name
        ]
        return float(found is not None and found["spec"].get("replicas") == 0 and not pods)

    return score


def _scales(obj: Object) -> bool:
    spec = obj["spec"]
    target = spec["scaleTargetRef"]
    return (
        (target["kind"], target["name"]) == ("Deployment", "web")
        and spec.get("minReplicas") == 2
        and spec["maxReplicas"] == 6
    )


_AUTOSCALER = named("autoscaling/v2", "HorizontalPodAutoscaler", "web", "default") | {
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 2,
        "maxReplicas": 6,
        "metrics": [
            {
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 60},
                },
            }
        ],
    }
}

TASKS = (
    Task(
        "scale-out",
        "scaling",
        "The Deployment web in the namespace default has one replica and needs four.",
        [deployment("web", replicas=1)],
        grown("web", 1, 4),
        [actions.scale(named("apps/v1", "Deployment", "web", "default"), 4)],
    ),
    Task(
        "scale-to-zero",
        "scaling",
        "Nobody uses the Deployment idle in the namespace default at night. Stop its pods without "
        "deleting it; leave the Deployment web as it is.",
        [deployment("idle", replicas=3), deployment("web", replicas=1)],
        all_of(gone("idle"), grown("web", 0, 1)),
        [actions.scale(named("apps/v1", "Deployment", "idle", "default"), 0), actions.WAIT],
    ),
    Task(
        "scale-automatically",
        "scaling",
        "Have the Deployment web in the namespace default scaled by a HorizontalPodAutoscaler "
        "called web: between 2 and 6 replicas, at 60 % of the CPU that its pods request.",
        [deployment("web", replicas=2, requests={"cpu": "100m"})],
        holds("horizontalpodautoscalers", "web", "default", _scales),
        [actions.apply(_AUTOSCALER)],
    ),
)
