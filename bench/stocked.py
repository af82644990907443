"""A plane that is full from the start: `python -m bench.stocked KUBECONFIG NODES PODS SETS`.

Its own verbs create them, in the process that then serves them, which is many times faster than
over connections. The kubeconfig is there once it listens.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from bench import population
from kvestigate.aio.loops import fast_loop
from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.files import replace_file
from kvestigate.kube import builtins
from kvestigate.plane.authn.tokens import StaticTokens, digest
from kvestigate.plane.authn.user import AUTHENTICATED, MASTERS, User
from kvestigate.plane.authz.interface import AllowAll
from kvestigate.plane.server import ApiServer
from kvestigate.plane.store.memory import MemoryBackend
from kvestigate.plane.store.store import Store
from kvestigate.wire.server import serve
from tests.upstream.processes import Process

_TOKEN = "of-the-bench"
_TOGETHER = 64
_PATIENCE = 600.0


class StockedPlane:
    """`with StockedPlane(directory, nodes=5, pods=100, sets=1) as plane:`"""

    def __init__(self, directory: Path, *, nodes: int, pods: int, sets: int) -> None:
        self._kubeconfig = directory / "kubeconfig"
        sizes = [str(nodes), str(pods), str(sets)]
        command = [sys.executable, "-m", "bench.stocked", str(self._kubeconfig), *sizes]
        self._process = Process("stocked plane", command, directory / "plane.log")

    def __enter__(self) -> StockedPlane:
        self._process.start(self._kubeconfig.exists, deadline=_PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def admin_kubeconfig(self) -> Path:
        return self._kubeconfig


async def _serve(kubeconfig: Path, nodes: int, pods: int, sets: int) -> None:
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest(_TOKEN): User("admin", (MASTERS, AUTHENTICATED))})
        handle = ApiServer(store, tokens, AllowAll(), random=Random(1)).handle
        headers = [("authorization", f"Bearer {_TOKEN}")]
        await _stock(Api(InProcessTransport(handle, headers=headers)), nodes, pods, sets)
        server = await serve(handle)
        replace_file(kubeconfig, _config(server.address[1]).encode())
        await asyncio.Event().wait()


async def _stock(api: Api, nodes: int, pods: int, sets: int) -> None:
    async def create(plural: str, body: population.Json, namespace: str = "") -> None:
        resource, within = builtins.resource(plural), namespace or None
        await api.create(resource, body, namespace=within)

    async def describe(plural: str, name: str, status: Any, namespace: str = "") -> None:
        resource, within = builtins.resource(plural), namespace or None
        await api.patch(resource, name, {"status": status}, namespace=within, subresource="status")

    async def namespace(index: int) -> None:
        name = population.namespace(index)
        await create("namespaces", {"metadata": {"name": name}})
        await create("serviceaccounts", {"metadata": {"name": "default"}}, name)

    async def node(index: int) -> None:
        body = population.node_body(index)
        await create("nodes", body)
        await describe("nodes", body["metadata"]["name"], population.node_status(index))

    async def pod(index: int) -> None:
        body, within = population.pod_body(index, nodes), population.namespace(index)
        await create("pods", body, within)
        status = population.pod_status(index)
        await describe("pods", body["metadata"]["name"], status, within)

    async def workload(index: int) -> None:
        for plural, body in population.workload(index).items():
            await create(plural, body, population.namespace(index))

    await _everywhere(population.NAMESPACES, namespace)
    await _everywhere(nodes, node)
    await _everywhere(pods, pod)
    await _everywhere(sets, workload)


async def _everywhere(count: int, make: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    async def share(start: int) -> None:
        for index in range(start, count, _TOGETHER):
            await make(index)

    async with asyncio.TaskGroup() as tasks:
        for start in range(_TOGETHER):
            tasks.create_task(share(start))


def _config(port: int) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "u", "user": {"token": _TOKEN}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
    )


if __name__ == "__main__":
    path, *sizes = sys.argv[1:]
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(_serve(Path(path), *map(int, sizes)))
