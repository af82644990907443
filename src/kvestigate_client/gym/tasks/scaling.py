"""There is too little of something, or too much."""

from __future__ import annotations

from kvestigate_client.guards import STANDARD, only
from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import deployment, named
from kvestigate_client.gym.tasks.reading import pods_of
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import Score, all_of, available, holds, ready


def grown(name: str, start: int, wanted: int) -> Score:
    """How far a Deployment has come from `start` ready replicas to `wanted`, and not beyond."""

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find("deployments", name, "default")
        if found is None or found["spec"].get("replicas", 1) > wanted:
            return 0.0
        return max(0.0, min(1.0, (ready(found) - start) / (wanted - start)))

    return score


def gone(name: str, kept: str) -> Score:
    """1 when a Deployment wants no pods, and there are only those of the one that is kept."""

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find("deployments", name, "default")
        others = len(snapshot.items("pods", "default")) - len(pods_of(snapshot, kept))
        return float(found is not None and found["spec"].get("replicas") == 0 and not others)

    return score


def _scales(obj: Object) -> bool:
    spec = obj["spec"]
    wanted = _AUTOSCALER["spec"]
    return (
        spec["scaleTargetRef"] == wanted["scaleTargetRef"]
        and (spec.get("minReplicas"), spec["maxReplicas"]) == (2, 6)
        and spec.get("metrics") == wanted["metrics"]
        and not any(
            rules.get("selectPolicy") == "Disabled"
            for rules in (spec.get("behavior") or {}).values()
        )
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
        guards=(*STANDARD, only("deployments", "web", "replicas")),
    ),
    Task(
        "scale-to-zero",
        "scaling",
        "Nobody uses the Deployment idle in the namespace default at night. Stop its pods without "
        "deleting it; leave the Deployment web as it is.",
        [deployment("idle", replicas=3), deployment("web", replicas=1)],
        all_of(gone("idle", kept="web"), available("deployments", "web")),
        [actions.scale(named("apps/v1", "Deployment", "idle", "default"), 0), actions.WAIT],
        guards=(*STANDARD, only("deployments", "idle", "replicas"), only("deployments", "web")),
    ),
    Task(
        "scale-automatically",
        "scaling",
        "Have the Deployment web in the namespace default scaled by a HorizontalPodAutoscaler "
        "called web: between 2 and 6 replicas, at 60 % of the CPU that its pods request.",
        [deployment("web", replicas=2, requests={"cpu": "100m"})],
        all_of(
            holds("horizontalpodautoscalers", "web", "default", _scales),
            available("deployments", "web", replicas=2),
        ),
        [actions.apply(_AUTOSCALER)],
        guards=(*STANDARD, only("deployments", "web", "replicas")),
    ),
)
