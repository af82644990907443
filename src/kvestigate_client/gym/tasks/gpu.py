"""GPUs are there, but not where they are needed."""

from __future__ import annotations

from kvestigate_client.guards import STANDARD, only
from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import gpu_deployment, named, node
from kvestigate_client.gym.tasks.reading import CONTAINER, containers
from kvestigate_client.results import Object
from kvestigate_client.scores import all_of, available, holds

_PLACE = ("template.spec.nodeSelector", "template.spec.affinity")
"""Where pods may go."""


def _has_all_gpus(obj: Object) -> bool:
    limits = (containers(obj)[0].get("resources") or {}).get("limits") or {}
    return (obj["spec"]["replicas"], limits.get("nvidia.com/gpu")) == (2, "4")


def _is_stopped(obj: Object) -> bool:
    return bool(obj["spec"]["replicas"] == 0)


TASKS = (
    Task(
        "gpu-consolidate",
        "gpu",
        "The Deployment train in the namespace default wants all 4 GPUs of a node, but each of the "
        "two nodes has one in use by the Deployments left and right. Get all three to run.",
        [
            node("gpu-1", gpus=4),
            node("gpu-2", gpus=4),
            gpu_deployment("left", 1, on="gpu-1"),
            gpu_deployment("right", 1, on="gpu-2"),
            gpu_deployment("train", 4),
        ],
        all_of(*(available("deployments", name) for name in ("left", "right", "train"))),
        [actions.apply(gpu_deployment("right", 1, on="gpu-1")), actions.WAIT, actions.WAIT],
        guards=(
            *STANDARD,
            only("deployments", "left", *_PLACE),
            only("deployments", "right", *_PLACE),
            only("deployments", "train"),
        ),
    ),
    Task(
        "gpu-split",
        "gpu",
        "The Deployment train in the namespace default asks for 8 GPUs in one pod; the two nodes "
        "have 4 each. Let it have all of them as 2 replicas.",
        [node("gpu-1", gpus=4), node("gpu-2", gpus=4), gpu_deployment("train", 8)],
        all_of(
            available("deployments", "train", replicas=2),
            holds("deployments", "train", "default", _has_all_gpus),
        ),
        [actions.apply(gpu_deployment("train", 4, replicas=2)), actions.WAIT],
        guards=(*STANDARD, only("deployments", "train", "replicas", f"{CONTAINER}.resources")),
    ),
    Task(
        "gpu-idle",
        "gpu",
        "The Deployment notebook in the namespace default holds all GPUs and does nothing with "
        "them. Stop it, without deleting it, so that the Deployment serve can run.",
        [
            node("gpu-1", gpus=2),
            gpu_deployment("notebook", 2),
            gpu_deployment("serve", 2),
        ],
        all_of(
            available("deployments", "serve"),
            holds("deployments", "notebook", "default", _is_stopped),
        ),
        [
            actions.scale(named("apps/v1", "Deployment", "notebook", "default"), 0),
            actions.WAIT,
            actions.WAIT,
        ],
        guards=(
            *STANDARD,
            only("deployments", "notebook", "replicas"),
            only("deployments", "serve"),
        ),
    ),
)
