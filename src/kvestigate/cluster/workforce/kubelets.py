"""The kubelet API of simulated nodes, answered from the state of their plane.

The workers of a plane come and go, and on virtual time they stand still between two steps. All that
a simulated container does follows from its spec and from when it started, so its log and a command
in it need no worker.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from kvestigate.client.api import Api
from kvestigate.client.cache import Key, key_of
from kvestigate.cluster.node.api.kubelet import KubeletApi
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.interface import Process
from kvestigate.cluster.node.hosts.logs import Log
from kvestigate.cluster.node.hosts.simulated import RUNTIME, SimulatedHost, SimulatedProcess
from kvestigate.cluster.node.pods.records import ContainerRecord, Run, Waiting
from kvestigate.cluster.node.spec.pod import Pod
from kvestigate.cluster.node.volumes.sources import Sources
from kvestigate.cluster.plane.egress.reach import Backends, Opener, no_stand_in
from kvestigate.cluster.plane.model import objects
from kvestigate.cluster.plane.store.plane import Plane
from kvestigate.cluster.plane.tenancy.planes import Planes
from kvestigate.cluster.workforce.identities import kubelet
from kvestigate.cluster.workforce.nodes import is_simulated
from kvestigate.cluster.workforce.plane_workers import Connect
from kvestigate.cluster.workforce.recalling import ended_run, launch_of, statuses
from kvestigate.errors import ServiceUnavailable
from kvestigate.http.limits import Limits
from kvestigate.http.message import Request, Response, Upgrade
from kvestigate.http.server import Server
from kvestigate.kube.views.pods import ContainerStatus

NODES, PODS = ("", "nodes"), ("", "pods")


@dataclass(slots=True)
class RecalledPod:
    """A pod of a simulated node, with the runs that its status tells of."""

    pod: Pod
    key: Key
    started_at: float
    processes: dict[str, Process] = field(default_factory=dict)
    previous: dict[str, Process] = field(default_factory=dict)
    records: Mapping[str, ContainerRecord] = field(default_factory=dict)

    def log(self, container: str, *, previous: bool) -> Log | None:
        process = (self.previous if previous else self.processes).get(container)
        return process.log if process is not None else None


class SimulatedKubelets:
    """Stands in for the kubelets of all simulated nodes of a server."""

    def __init__(self, planes: Planes, backends: Backends, connect: Connect) -> None:
        self._planes = planes
        self._backends = backends
        self._connect = connect

    async def __aenter__(self) -> SimulatedKubelets:
        self._backends.stand_in = self.opener
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._backends.stand_in = no_stand_in

    def opener(self, plane: str, node: str) -> Opener | None:
        """What opens a connection to the kubelet of a simulated node; None for other nodes."""
        loaded = self._planes.store.loaded(plane)
        item = None if loaded is None else loaded.state.get(NODES, "", node)
        if item is None:
            return None
        obj = objects.read(item)
        runtime = ((obj.get("status") or {}).get("nodeInfo") or {}).get("containerRuntimeVersion")
        if runtime != RUNTIME or not is_simulated(obj["metadata"].get("annotations") or {}):
            return None
        return partial(self._open, plane, node)

    async def _open(self, plane: str, node: str) -> socket.socket:
        near, far = socket.socketpair()
        far.setblocking(False)
        await Server(partial(self._answer, plane, node), Limits()).take(far)
        return near

    async def _answer(self, plane_name: str, node: str, request: Request) -> Response | Upgrade:
        plane = self._planes.store.loaded(plane_name)
        if plane is None:
            raise ServiceUnavailable(f'plane "{plane_name}" is not loaded')
        clock = self._planes.times.clock(plane)
        host = SimulatedHost(clock)
        pods = await self._pods(plane, node, host)
        workers = {recalled.pod.metadata.uid: recalled for recalled in pods}
        server = KubeletApi(NodeConfig(node), host, clock, workers, _nowhere)
        return await server.handle(request)

    async def _pods(self, plane: Plane, node: str, host: SimulatedHost) -> list[RecalledPod]:
        sources = Sources(Api(self._connect(plane.name, kubelet(node))))
        clock = self._planes.times.clock(plane)
        found = []
        for item in plane.state.collection(PODS).items():
            if f'"nodeName":"{node}"'.encode() in item.data:
                pod = msgspec.json.decode(item.data, type=Pod)
                if pod.spec.node_name == node:
                    recalled = RecalledPod(pod, key_of(pod), clock.now())
                    await _recall(recalled, host, sources, clock.now())
                    found.append(recalled)
                    await asyncio.sleep(0)
        return found


async def _recall(recalled: RecalledPod, host: SimulatedHost, sources: Sources, now: float) -> None:
    records: dict[str, ContainerRecord] = {}
    for status in statuses(recalled.pod):
        container = recalled.pod.container(status.name)
        if container is None:
            continue
        launch = await launch_of(recalled.pod, container, status.restart_count, sources, ())
        state, last = status.state, status.last_state.terminated
        current: Process | None = None
        if state.running is not None and state.running.started_at is not None:
            current = host.recall(launch, state.running.started_at.timestamp(), now)
        elif state.terminated is not None:
            current = ended_run(host, launch, state.terminated)
        elif last is not None:
            current = ended_run(host, launch, last)
        if current is not None:
            recalled.processes[status.name] = current
        if last is not None and (before := ended_run(host, launch, last)) is not None:
            recalled.previous[status.name] = before
        records[status.name] = _record(status, current)
    recalled.records = records


def _record(status: ContainerStatus, process: Process | None) -> ContainerRecord:
    waiting = status.state.waiting
    run = Run("", process.started_at) if isinstance(process, SimulatedProcess) else None
    why = None if waiting is None else Waiting(waiting.reason, waiting.message)
    return ContainerRecord(run=run, waiting=why)


async def _nowhere(process: Process, port: int) -> tuple[str, int]:
    raise OSError("nothing listens in a simulated container")
