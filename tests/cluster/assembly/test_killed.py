"""A whole embedded cluster is killed under load, again and again, and comes back.

KVESTIGATE_CLUSTER_KILLS=20 does it at length.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.access import resolve
from kvestigate.client.api import PODS, Api
from kvestigate.client.choice import AccessOptions
from kvestigate.client.connect import connect
from kvestigate.cluster.assembly.clusters import down, up
from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape, clusters_directory
from kvestigate.kube import builtins
from tests.cluster.assembly.conftest import until_pods

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="waits by a pidfd")

KILLS = int(os.environ.get("KVESTIGATE_CLUSTER_KILLS", "2"))
WRITERS = 4
NAME = "killed"

DEPLOYMENTS = builtins.resource("deployments")
MAPS = builtins.resource("configmaps")


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    home = {"XDG_STATE_HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "kubeconfig")}
    made = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **home}
    yield made
    down(made, NAME, delete=True)


@asynccontextmanager
async def running(environ: dict[str, str]) -> Any:
    """The cluster, up; as its owner sees it."""
    await asyncio.to_thread(up, environ, NAME, Shape(host="simulated", nodes=2))
    async with connect(resolve(AccessOptions(), environ, None)) as api:
        yield api


def kill(environ: dict[str, str]) -> None:
    """Returns when the process is gone."""
    process = os.pidfd_open(ClusterDirectory(clusters_directory(environ), NAME).read().pid)
    try:
        signal.pidfd_send_signal(process, signal.SIGKILL)
        gone, _, _ = select.select([process], [], [], 30)
        assert gone
    finally:
        os.close(process)


class Load:
    """Writers that remember what the cluster has acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        self._enough = asyncio.Event()
        self._limit = 0

    async def until_killed(
        self, api: Api, round: int, writes: int, environ: dict[str, str]
    ) -> None:
        self._enough.clear()
        self._limit = len(self.acknowledged) + writes
        writers = [asyncio.ensure_future(self._write(api, round, n)) for n in range(WRITERS)]
        writers.append(asyncio.ensure_future(self._scale(api, round)))
        await self._enough.wait()
        await asyncio.to_thread(kill, environ)
        await asyncio.gather(*writers)

    async def _write(self, api: Api, round: int, writer: int) -> None:
        for number in range(100_000):
            name = f"round-{round}-{writer}-{number}"
            try:
                await api.create(MAPS, {"metadata": {"name": name}, "data": {"made": name}})
            except (errors.ConnectionFailed, errors.DeadlineExceeded):
                return  # killed: this one may or may not be there
            self.acknowledged.add(name)
            if len(self.acknowledged) >= self._limit:
                self._enough.set()

    async def _scale(self, api: Api, round: int) -> None:
        """The controllers are busy too when the end comes."""
        for replicas in (round % 5 + 1, round % 3 + 2):
            try:
                await api.scale(DEPLOYMENTS, "web", replicas)
            except (errors.ConnectionFailed, errors.DeadlineExceeded):
                return


def deployment() -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "main", "image": "example.com/app", "command": ["serve"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


async def converged(api: Api) -> None:
    """As many pods run as were last asked for, and no others are left."""
    wanted = (await api.get(DEPLOYMENTS, "web"))["spec"]["replicas"]

    def enough(pods: list[dict[str, Any]]) -> bool:
        going = [pod for pod in pods if "deletionTimestamp" in pod["metadata"]]
        running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
        return bool(not going and len(pods) == len(running) == wanted)

    await until_pods(api, enough)


@pytest.mark.timeout(60 + 30 * KILLS)
async def test_a_killed_cluster_comes_back_and_has_lost_nothing(environ: dict[str, str]) -> None:
    chance = random.Random(11)
    load = Load()
    async with running(environ) as api:
        await api.create(DEPLOYMENTS, deployment())
        await converged(api)
    for number in range(KILLS):
        async with running(environ) as api:
            await load.until_killed(api, number, chance.randrange(5, 120), environ)
        async with running(environ) as api:
            found = {each["metadata"]["name"] for each in (await api.list(MAPS)).items}
            assert load.acknowledged <= found
            await converged(api)
            assert {pod["status"]["phase"] for pod in (await api.list(PODS)).items} == {"Running"}
