"""GPUs are there, but not where they are needed."""

from __future__ import annotations

from kvestigate_client.gym import actions
from kvestigate_client.gym.task import Task
from kvestigate_client.gym.tasks.manifests import gpu_deployment, named, node
from kvestigate_client.scores import available

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
        available("deployments", "train"),
        [actions.apply(gpu_deployment("right", 1, on="gpu-1")), actions.WAIT, actions.WAIT],
    ),
    Task(
        "gpu-split",
        "gpu",
        "The Deployment train in the namespace default asks for 8 GPUs in one pod; the two nodes "
        "have 4 each. Let it have all of them as 2 replicas.",
        [node("gpu-1", gpus=4), node("gpu-2", gpus=4), gpu_deployment("train", 8)],
        available("deployments", "train"),
        [actions.apply(gpu_deployment("train", 4, replicas=2)), actions.WAIT],
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
        available("deployments", "serve"),
        [
            actions.scale(named("apps/v1", "Deployment", "notebook", "default"), 0),
            actions.WAIT,
            actions.WAIT,
        ],
    ),
)
