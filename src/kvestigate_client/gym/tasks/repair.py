"""Something is broken; find out what, and mend it."""

from __future__ import annotations

from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import deployment, named, service
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import Score, available

_SERVICE = "kubernetes.io/service-name"


def backed(name: str, wanted: int) -> Score:
    """How many of the wanted endpoints a Service has."""

    def score(snapshot: Snapshot) -> float:
        slices = [
            each
            for each in snapshot.items("endpointslices", "default")
            if (each["metadata"].get("labels") or {}).get(_SERVICE) == name
        ]
        ready = sum(
            endpoint.get("conditions", {}).get("ready") is True
            for each in slices
            for endpoint in each.get("endpoints") or ()
        )
        return min(1.0, ready / wanted)

    return score


def _quota(pods: str) -> Object:
    return named("v1", "ResourceQuota", "pods", "default") | {"spec": {"hard": {"pods": pods}}}


TASKS = (
    Task(
        "repair-selector",
        "repair",
        "Nobody reaches the Service web in the namespace default, though the Deployment web runs. "
        "Make the Service lead to its pods.",
        [deployment("web", replicas=2), service("web", {"app": "webb"})],
        backed("web", 2),
        [actions.apply(service("web", {"app": "web"}))],
    ),
    Task(
        "repair-node-selector",
        "repair",
        "The pods of the Deployment api in the namespace default stay Pending. Get them to run.",
        [deployment("api", replicas=2, pod={"nodeSelector": {"disk": "floppy"}})],
        available("deployments", "api"),
        [
            actions.patch(
                named("apps/v1", "Deployment", "api", "default")
                | {"spec": {"template": {"spec": {"nodeSelector": None}}}}
            )
        ],
    ),
    Task(
        "repair-requests",
        "repair",
        "The Deployment batch in the namespace default asks for more than any node has. "
        "Let it run with what there is.",
        [deployment("batch", requests={"cpu": "900"})],
        available("deployments", "batch"),
        [actions.apply(deployment("batch", requests={"cpu": "1"}))],
    ),
    Task(
        "repair-quota",
        "repair",
        "The Deployment shop in the namespace default has no pods: the ResourceQuota pods does not "
        "allow any. Allow ten.",
        [_quota("0"), deployment("shop", replicas=2)],
        available("deployments", "shop"),
        [actions.apply(_quota("10")), *[actions.WAIT] * 5],
    ),
)
