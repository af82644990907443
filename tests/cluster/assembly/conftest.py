"""Embedded clusters, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kvestigate.client.access import resolve
from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from kvestigate.cluster.assembly.assemble import embedded_cluster
from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape

Object = dict[str, Any]

LONG = 30.0
"""Seconds after which something that should happen never will."""


@asynccontextmanager
async def cluster(directory: Path, shape: Shape) -> AsyncIterator[Api]:
    """Its administrator's connection."""
    place = ClusterDirectory(directory, "test")
    place.path.mkdir(parents=True, exist_ok=True)
    async with embedded_cluster(place, shape):
        environ = {"KUBECONFIG": str(place.kubeconfig), "PATH": "/usr/bin:/bin"}
        async with connect(resolve(AccessOptions(), environ, None)) as api:
            yield api


async def until_pods(
    api: Api, enough: Callable[[list[Object]], bool], selection: Selection | None = None
) -> list[Object]:
    """The pods, once they are as wanted."""
    known: dict[str, Object] = {}
    chosen = selection or Selection()
    async with asyncio.timeout(LONG), api.watch(PODS, chosen, type=Object) as events:
        async for event in events:
            pod: Object = event.object
            if event.type == "DELETED":
                known.pop(pod["metadata"]["uid"], None)
            else:
                known[pod["metadata"]["uid"]] = pod
            if enough(list(known.values())):
                return list(known.values())
    raise AssertionError("the watch ended")


def all_running(count: int) -> Callable[[list[Object]], bool]:
    def enough(pods: list[Object]) -> bool:
        phases = [(pod.get("status") or {}).get("phase") for pod in pods]
        return phases.count("Running") == count

    return enough
