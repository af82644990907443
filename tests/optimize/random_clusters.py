"""Random GPU clusters at work in this process: API server, controllers, scheduler, simulated nodes.

Everything that the scheduler or the eviction API can refuse occurs: taints, cordons, selectors,
affinity, spread, host ports, local volumes, budgets, pods without a controller, DaemonSets, Jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

from kvestigate.aio.clock import WALL
from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.auth.interface import Credential
from kvestigate.client.auth.static import Static
from kvestigate.client.endpoint import parse_endpoint
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Manager
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.cluster.workforce.nodes import Nodes
from kvestigate.http.server import serve
from kvestigate.kube import builtins
from tests.bed import Bed, Object
from tests.static_tokens import StaticTokens

GPU, ZONE, HOST = "nvidia.com/gpu", "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NAMESPACE = "ml"
QUIET = 0.1
"""Seconds without a change after which nothing more is to come."""


@dataclass(frozen=True)
class Living:
    """A cluster at work."""

    bed: Bed
    access: Access

    async def quiet(self) -> None:
        """Returns when no pod and no budget has changed for a moment, and all pods are decided."""
        async with asyncio.timeout(20):
            while True:
                await asyncio.gather(*(self._quiet(kind) for kind in ("pods", _BUDGETS)))
                pods = await self.pods()
                budgets = await self.bed.all(_BUDGETS)
                if all(map(_decided, pods)) and all(map(_observed, budgets.values())):
                    return

    async def _quiet(self, kind: str) -> None:
        resource = builtins.resource(kind)
        page = await self.bed.api.list(resource)
        version = page.metadata.resource_version
        async with self.bed.api.watch(resource, resource_version=version) as events:
            while True:
                try:
                    async with asyncio.timeout(QUIET):
                        await anext(aiter(events))
                except TimeoutError:
                    return

    async def pods(self) -> list[Object]:
        page = await self.bed.api.list(builtins.resource("pods"))
        return list(page.items)

    async def nodes(self) -> dict[str, Object]:
        return await self.bed.all("nodes")


_BUDGETS = "poddisruptionbudgets"


def _decided(pod: Object) -> bool:
    if pod["metadata"].get("deletionTimestamp"):
        return False
    if pod["spec"].get("nodeName"):
        return pod["status"].get("phase") in ("Running", "Succeeded", "Failed")
    return any(
        each["type"] == "PodScheduled" and each["status"] == "False"
        for each in pod["status"].get("conditions") or ()
    )


def _observed(budget: Object) -> bool:
    seen = (budget.get("status") or {}).get("observedGeneration", 0)
    return bool(seen >= budget["metadata"]["generation"])


def gpus_by_node(nodes: dict[str, Object], pods: list[Object]) -> dict[str, int]:
    """Allocated GPUs, counted from the objects alone; only nodes that offer GPUs."""
    held = {
        name: 0 for name, node in nodes.items() if int(node["status"]["allocatable"].get(GPU, 0))
    }
    for pod in pods:
        where = pod["spec"].get("nodeName")
        if where in held and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            for container in pod["spec"]["containers"]:
                requests = container.get("resources", {}).get("requests", {})
                held[where] += int(requests.get(GPU, 0))
    return held


@asynccontextmanager
async def living(seed: int) -> AsyncIterator[Living]:
    """The cluster of a seed, once everything in it has settled."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Store(MemoryBackend()))
        tokens = StaticTokens({digest("t"): User("admin", (MASTERS, AUTHENTICATED))})
        server = ApiServer(store, tokens, AllowAll(), random=Random(seed))
        api = Api(InProcessTransport(server.handle, headers=[("authorization", "Bearer t")]))
        listening = await stack.enter_async_context(await serve(server.handle))
        host, port = listening.address
        access = Access(parse_endpoint(f"http://{host}:{port}"), Static(Credential(token="t")))
        bed = Bed(api, NAMESPACE)
        random = Random(seed)
        await bed.create("namespaces", {"metadata": {"name": NAMESPACE}})
        for body in nodes_of(random):
            await _create_node(bed, body)
        await stack.enter_async_context(Nodes(api, WALL, 0))
        await stack.enter_async_context(Manager(api, CONTROLLERS))
        await stack.enter_async_context(Scheduler(api, random=Random(seed)))
        for kind, body in workloads_of(random):
            await bed.create(kind, body)
        cluster = Living(bed, access)
        await cluster.quiet()
        for name in sorted(await cluster.nodes()):
            if random.random() < 0.1:
                await bed.patch("nodes", name, {"spec": {"unschedulable": True}})
        await cluster.quiet()
        yield cluster


async def _create_node(bed: Bed, body: Object) -> None:
    name = body["metadata"]["name"]
    await bed.create("nodes", body)
    await bed.patch("nodes", name, {"status": body["status"]}, "status")


def nodes_of(random: Random) -> Iterator[Object]:
    for number in range(random.randint(4, 8)):
        name = f"n{number}"
        gpus = random.choice((4, 8, 8, 8)) if number else 0
        room = {"cpu": str(random.choice((8, 16))), "memory": "64Gi", "pods": "110"}
        room |= {GPU: str(gpus)} if gpus else {}
        labels = {HOST: name, ZONE: random.choice("ab")}
        if gpus and random.random() < 0.3:
            labels["nvidia.com/gpu.product"] = random.choice(("H100", "T4"))
        taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        taints = [taint] if random.random() < 0.2 else []
        yield {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints} if taints else {},
            "status": {"capacity": room, "allocatable": room},
        }


def workloads_of(random: Random) -> Iterator[tuple[str, Object]]:
    for number in range(random.randint(3, 7)):
        yield from _workload(f"w{number}", random)


def _workload(name: str, random: Random) -> Iterator[tuple[str, Object]]:
    kind = random.choices(
        ("deployments", "statefulsets", "pods", "jobs", "daemonsets"), (10, 5, 2, 2, 1)
    )[0]
    replicas = random.randint(1, 3)
    labels = {"app": name}
    spec = _spec(name, random)
    if random.random() < 0.12:
        yield from _volume(name, spec, random)
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": labels}
    meta = {"name": name, "labels": labels}
    if random.random() < 0.25:
        limit = random.choice(({"minAvailable": replicas}, {"maxUnavailable": 1}))
        yield _BUDGETS, {"metadata": {"name": name}, "spec": {**limit, "selector": selector}}
    if kind == "pods":
        yield kind, {"metadata": meta, "spec": spec}
    elif kind == "jobs":
        template["spec"]["restartPolicy"] = "Never"
        limits = {"parallelism": replicas, "completions": replicas}
        limits["backoffLimit"] = random.choice((0, 6))
        yield kind, {"metadata": meta, "spec": {**limits, "template": template}}
    elif kind == "daemonsets":
        yield kind, {"metadata": meta, "spec": {"selector": selector, "template": template}}
    else:
        body: Object = {"replicas": replicas, "selector": selector, "template": template}
        if kind == "statefulsets":
            body |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        yield kind, {"metadata": meta, "spec": body}


def _spec(name: str, random: Random) -> Object:
    amounts = {"cpu": random.choice(("500m", "1", "2")), "memory": "1Gi"}
    if random.random() < 0.85:
        amounts[GPU] = random.choice("111224")
    limits = {GPU: amounts[GPU]} if GPU in amounts else {}
    container: Object = {
        "name": "main",
        "image": "x",
        "resources": {"requests": amounts, "limits": limits},
    }
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": 0}
    me = {"matchLabels": {"app": name}}
    chance = random.random
    if chance() < 0.08:
        container["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    if chance() < 0.15:
        spec["nodeSelector"] = {ZONE: random.choice("ab")}
    if chance() < 0.2:
        spec["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    elif chance() < 0.05:
        spec["tolerations"] = [{"operator": "Exists"}]
    affinity: Object = {}
    if chance() < 0.12:
        term = {"labelSelector": me, "topologyKey": random.choice((HOST, ZONE))}
        affinity["podAntiAffinity"] = {REQUIRED: [term]}
    elif chance() < 0.1:
        affinity["podAffinity"] = {REQUIRED: [{"labelSelector": me, "topologyKey": ZONE}]}
    if affinity:
        spec["affinity"] = affinity
    if chance() < 0.15:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": random.choice((HOST, ZONE)),
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": me,
            }
        ]
    if chance() < 0.1:
        spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    return spec


def _volume(name: str, spec: Object, random: Random) -> Iterator[tuple[str, Any]]:
    """A claim of the pod spec, and the local volume that it is bound to."""
    where = {"key": ZONE, "operator": "In", "values": [random.choice("ab")]}
    yield (
        "persistentvolumes",
        {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "local": {"path": "/data"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [where]}]}
                },
            },
        },
    )
    yield (
        "persistentvolumeclaims",
        {
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    spec["volumes"] = [*spec.get("volumes", ()), volume]
