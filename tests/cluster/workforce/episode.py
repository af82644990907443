"""A short story of a plane on a virtual clock, told twice the same: prints its fingerprint.

python -m tests.cluster.workforce.episode RUNS
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.kube import builtins
from tests.cluster.workforce.conftest import (
    DEPLOYMENTS,
    JOBS,
    PODS,
    World,
    deployment,
    fingerprint,
    job,
    names,
    pod_template,
    world,
)

SERVICE: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]},
}


async def episode(planes: World, name: str, seed: int = 7) -> str:
    """Deploy, run, scale, lose, crash, roll out, delete; the fingerprint of what it comes to."""
    plane, api = await planes.virtual(name, seed)
    await api.create(DEPLOYMENTS, deployment("web", 3))
    await api.create(JOBS, job("work", "sleep", "7", completions=4))
    await api.create(builtins.resource("services"), SERVICE)
    await planes.workers.step(plane, seconds=5)
    await api.scale(DEPLOYMENTS, "web", 5)
    await api.create(
        PODS, {"metadata": {"generateName": "crash-"}, "spec": pod_template("false")["spec"]}
    )
    await planes.workers.step(plane, seconds=12.5)
    web = [pod for pod in await names(api, PODS) if pod.startswith("web")]
    await api.delete(PODS, web[2])
    await planes.workers.step(plane)
    change = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}
    await api.patch(DEPLOYMENTS, "web", change)
    await api.delete(JOBS, "work")
    await planes.workers.step(plane)
    return fingerprint(plane)


async def tell(runs: int) -> None:
    async with world(MemoryBackend()) as planes:
        for number in range(runs):
            print(await episode(planes, f"run-{number}"))


if __name__ == "__main__":
    asyncio.run(tell(int(sys.argv[1])))
