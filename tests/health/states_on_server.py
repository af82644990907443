"""All states of the bank on one API server without controllers and kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kvestigate.client.api import Api
from kvestigate.kube import builtins
from tests.health.cluster_of import Object
from tests.health.planting import OLD, Case, plant_state

_TOGETHER = 8
"""Cases that are planted at a time."""


def node(name: str) -> Object:
    """A node that is well."""
    room = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": OLD}],
            "nodeInfo": {"kubeletVersion": "v1.36.4"},
        },
    }


NODES = [node(f"node-{index}") for index in (1, 2, 3)]
STORAGE_CLASS: Object = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": "csi.example.com",
}


async def plant_all(api: Api, bank: Iterable[Case]) -> None:
    for one in NODES:
        await api.create(builtins.resource("nodes"), one)
    await api.create(builtins.resource("storageclasses"), STORAGE_CLASS)
    room = asyncio.Semaphore(_TOGETHER)

    async def planted(case: Case) -> None:
        async with room:
            await plant_state(api, case)

    async with asyncio.TaskGroup() as group:
        for case in bank:
            group.create_task(planted(case))
