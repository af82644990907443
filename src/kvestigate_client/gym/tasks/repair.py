"""Something is broken; find out what, and mend it."""

from __future__ import annotations

from kvestigate_client.guards import STANDARD, only
from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import deployment, named, service
from kvestigate_client.gym.tasks.reading import CONTAINER, pods_of, requested_cpus
from kvestigate_client.results import Object, Snapshot
from kvestigate_client.scores import Score, all_of, available, holds

_SERVICE = "kubernetes.io/service-name"


def leads_to(name: str, deployment: str, wanted: int) -> Score:
    """How many pods of a Deployment a Service leads to: by its selector, and nowhere else."""

    def score(snapshot: Snapshot) -> float:
        found = snapshot.find("services", name, "default")
        selector = (found or {}).get("spec", {}).get("selector")
        pods = {pod["metadata"]["name"]: pod for pod in pods_of(snapshot, deployment)}
        reached = _reached(snapshot, name)
        if not selector or not reached <= pods.keys():
            return 0.0
        chosen = [pods[each] for each in reached if _selects(selector, pods[each])]
        return min(1.0, len(chosen) / wanted)

    return score


def _reached(snapshot: Snapshot, name: str) -> set[str]:
    """The pods behind the endpoints of a Service; "" for what is none."""
    return {
        (endpoint.get("targetRef") or {}).get("name", "")
        for each in snapshot.items("endpointslices", "default")
        if (each["metadata"].get("labels") or {}).get(_SERVICE) == name
        for endpoint in each.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready")
    }


def _selects(selector: dict[str, str], pod: Object) -> bool:
    return selector.items() <= (pod["metadata"].get("labels") or {}).items()


def _allows_ten(quota: Object) -> bool:
    return bool(quota["spec"] == {"hard": {"pods": "10"}})


def _quota(pods: str) -> Object:
    return named("v1", "ResourceQuota", "pods", "default") | {"spec": {"hard": {"pods": pods}}}


TASKS = (
    Task(
        "repair-selector",
        "repair",
        "Nobody reaches the Service web in the namespace default, though the Deployment web runs. "
        "Make the Service lead to its pods.",
        [deployment("web", replicas=2), service("web", {"app": "webb"})],
        leads_to("web", "web", 2),
        [actions.apply(service("web", {"app": "web"}))],
        guards=(
            *STANDARD,
            only("deployments", "web"),
            only("services", "web", "selector", "clusterIP", "clusterIPs"),
        ),
    ),
    Task(
        "repair-node-selector",
        "repair",
        "The pods of the Deployment api in the namespace default stay Pending. Get them to run.",
        [deployment("api", replicas=2, pod={"nodeSelector": {"disk": "floppy"}})],
        available("deployments", "api", replicas=2),
        [
            actions.patch(
                named("apps/v1", "Deployment", "api", "default")
                | {"spec": {"template": {"spec": {"nodeSelector": None}}}}
            )
        ],
        guards=(*STANDARD, only("deployments", "api", "template.spec.nodeSelector")),
    ),
    Task(
        "repair-requests",
        "repair",
        "The Deployment batch in the namespace default asks for more than any node has. "
        "Let it run with what there is; it still has to ask for some CPU.",
        [deployment("batch", requests={"cpu": "900"})],
        all_of(
            available("deployments", "batch"),
            holds("deployments", "batch", "default", lambda found: requested_cpus(found) > 0),
        ),
        [actions.apply(deployment("batch", requests={"cpu": "1"}))],
        guards=(*STANDARD, only("deployments", "batch", f"{CONTAINER}.resources")),
    ),
    Task(
        "repair-quota",
        "repair",
        "The Deployment shop in the namespace default has no pods: the ResourceQuota pods does not "
        "allow any. Allow ten.",
        [_quota("0"), deployment("shop", replicas=2)],
        all_of(
            available("deployments", "shop", replicas=2),
            holds("resourcequotas", "pods", "default", _allows_ten),
        ),
        [actions.apply(_quota("10")), *[actions.WAIT] * 5],
        guards=(*STANDARD, only("deployments", "shop")),
    ),
)
