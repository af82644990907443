"""A plane that is full from the start: `python -m bench.stocked KUBECONFIG NODES PODS SETS`.

Its own verbs create the first of its pods; the others are copies of these with other names, put
straight into the store, which takes seconds where requests would take minutes. The kubeconfig is
there once it listens. Whoever comes is its administrator: it is on loopback, without TLS.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from bench import population
from kvestigate.aio.loops import fast_loop
from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.request_info import ROOT
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.model import Item, Put, ResourceKey, hollow
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.store.store import Store
from kvestigate.files import replace_file
from kvestigate.http.message import Request
from kvestigate.http.server import serve
from kvestigate.kube import builtins
from tests.upstream.processes import Process

_TOGETHER = 64
_PATIENCE = 600.0
_PATTERNS = 1_200
"""Pods that differ by more than their names: whatever repeats among them divides this."""
_AT_ONCE = 1_000


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


class _Everybody:
    def authenticate(self, request: Request, plane: str, now: Callable[[], float]) -> User:
        return User("admin", (MASTERS, AUTHENTICATED))


async def _serve(kubeconfig: Path, nodes: int, pods: int, sets: int) -> None:
    async with Store(MemoryBackend()) as store:
        handle = ApiServer(store, _Everybody(), AllowAll(), random=Random(1)).handle
        await _stock(Api(InProcessTransport(handle)), nodes, min(pods, _PATTERNS), sets)
        await _copy(await store.plane(ROOT), nodes, pods)
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


async def _copy(plane: Plane, nodes: int, pods: int) -> None:
    key = ("", "pods")
    known = {item.name: item for item in plane.state.collection(key).items()}
    patterns = [known[population.pod_name(index)] for index in range(min(pods, _PATTERNS))]
    copies = _copies(key, patterns, nodes, pods)
    while some := list(islice(copies, _AT_ONCE)):
        await plane.commit(some, "admin")


def _copies(key: ResourceKey, patterns: list[Item], nodes: int, pods: int) -> Iterator[Put]:
    bodies = [hollow(item.data) for item in patterns]
    for index in range(len(patterns), pods):
        number = index % len(patterns)
        item, uid = patterns[number], str(uuid.UUID(int=index))
        other = {
            item.name: population.pod_name(index),
            item.uid: uid,
            population.node_name(number % nodes): population.node_name(index % nodes),
        }
        body = bodies[number]
        for before, after in other.items():
            body = body.replace(before.encode(), after.encode())
        yield Put(
            key,
            item.namespace,
            other[item.name],
            uid,
            body,
            labels=item.labels,
            owners=item.owners,
            fields=tuple(other.get(value, value) for value in item.fields),
        )


async def _everywhere(count: int, make: Callable[[int], Coroutine[Any, Any, None]]) -> None:
    async def share(start: int) -> None:
        for index in range(start, count, _TOGETHER):
            await make(index)

    async with asyncio.TaskGroup() as tasks:
        for start in range(_TOGETHER):
            tasks.create_task(share(start))


def _config(port: int) -> str:
    # Within one machine, and without TLS, it takes longer to compress than to send.
    cluster = {"server": f"http://127.0.0.1:{port}", "disable-compression": True}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
    )


if __name__ == "__main__":
    path, *sizes = sys.argv[1:]
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(_serve(Path(path), *map(int, sizes)))
