"""Something is paid for that nobody uses."""

from __future__ import annotations

from kvestigate_client.guards import STANDARD, only, same
from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import claim, deployment, named, service
from kvestigate_client.gym.tasks.reading import CONTAINER, requested_cpus
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import absent, all_of, available, holds, mean

_OF_ITS_TYPE = (
    "type",
    "ports.0.nodePort",
    "allocateLoadBalancerNodePorts",
    "externalTrafficPolicy",
    "clusterIP",
    "clusterIPs",
)
"""Fields of a Service that change with its type, or when it is made anew."""


def _modest(obj: Object) -> bool:
    return 0 < requested_cpus(obj) <= 0.5


def _ordinary(obj: Object) -> bool:
    spec = obj["spec"]
    return bool(spec["type"] == "ClusterIP" and spec.get("clusterIP") != "None")


def _no_load_balancer(snapshot: Snapshot) -> float:
    return float(
        all(each["spec"].get("type") != "LoadBalancer" for each in snapshot.items("services"))
    )


TASKS = (
    Task(
        "cost-requests",
        "cost",
        "The Deployment web in the namespace default requests 4 CPUs for each replica and uses "
        "less than half of one. Let it request at most 500m, at least something, and keep "
        "both replicas running.",
        [deployment("web", replicas=2, requests={"cpu": "4"})],
        all_of(
            holds("deployments", "web", "default", _modest),
            available("deployments", "web", replicas=2),
        ),
        [
            actions.apply(deployment("web", replicas=2, requests={"cpu": "500m"})),
            actions.WAIT,
            actions.WAIT,
        ],
        guards=(*STANDARD, only("deployments", "web", f"{CONTAINER}.resources")),
    ),
    Task(
        "cost-leftovers",
        "cost",
        "In the namespace default the claims old-data and scratch are used by no pod. Delete "
        "them; the claim data is needed.",
        [claim("old-data"), claim("scratch"), claim("data")],
        mean(
            absent("persistentvolumeclaims", "old-data"),
            absent("persistentvolumeclaims", "scratch"),
        ),
        [
            actions.delete(named("v1", "PersistentVolumeClaim", "old-data", "default")),
            actions.delete(named("v1", "PersistentVolumeClaim", "scratch", "default")),
        ],
        guards=(*STANDARD, same("persistentvolumeclaims", "data")),
    ),
    Task(
        "cost-load-balancer",
        "cost",
        "The Service internal in the namespace default has a load balancer of its own, though only "
        "pods use it. Make it an ordinary one, for the same pods.",
        [deployment("internal"), service("internal", {"app": "internal"}, type="LoadBalancer")],
        all_of(holds("services", "internal", "default", _ordinary), _no_load_balancer),
        [
            actions.patch(
                named("v1", "Service", "internal", "default") | {"spec": {"type": "ClusterIP"}}
            )
        ],
        guards=(
            *STANDARD,
            only("deployments", "internal"),
            only("services", "internal", *_OF_ITS_TYPE),
        ),
    ),
)
