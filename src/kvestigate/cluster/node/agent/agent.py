"""The agent of one node; `Fleet` runs them.

It is ready when the node is registered, has found the pods of an earlier agent and follows its
own. At its end the pods end, too, or are kept for the next agent (`keep_pods`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.aio.workqueue import WorkQueue
from kvestigate.client.api import Api
from kvestigate.client.cache import Key, key_of
from kvestigate.client.recorder import Recorder
from kvestigate.cluster.node.agent import registration
from kvestigate.cluster.node.agent.feed import Feed
from kvestigate.cluster.node.agent.presence import Presence
from kvestigate.cluster.node.api.kubelet import KubeletApi
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.allocation import Allocation
from kvestigate.cluster.node.gpu.exporter import GpuFigures
from kvestigate.cluster.node.gpu.model import VARIABLE
from kvestigate.cluster.node.hosts.interface import Host, Process
from kvestigate.cluster.node.net.addresses import Addresses, network_of
from kvestigate.cluster.node.net.network import ClusterNetwork, NodeNetwork
from kvestigate.cluster.node.pods.context import NodeContext
from kvestigate.cluster.node.pods.model_server import ModelServers
from kvestigate.cluster.node.pods.preparing import Preparation, RealPreparation
from kvestigate.cluster.node.pods.reporting import confirm_deletion
from kvestigate.cluster.node.pods.worker import PodWorker
from kvestigate.cluster.node.spec.pod import Pod
from kvestigate.http.server import Server, serve
from kvestigate.kube.views.core import Node

_log = logging.getLogger(__name__)

_GOODBYE = 1.0
"""Seconds that open streams get when the agent stops."""


Identify = Callable[[str], Api]
"""Connects to the API as the node of a name."""
Listening = Callable[[str, tuple[str, int]], None]
"""Told the name of a node, and where its kubelet API listens."""


def nobody(node: str, place: tuple[str, int]) -> None:
    return None


class Agent:
    """Runs the pods of one node."""

    def __init__(
        self,
        api: Api,
        host: Host,
        config: NodeConfig,
        *,
        feed: Feed,
        network: ClusterNetwork | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Clock = WALL,
        found: Node | None = None,
        listening: Listening = nobody,
        driver: Api | None = None,
    ) -> None:
        """`feed` and `network` run already: many nodes share them. `tls` is for the kubelet API.

        `found` is the Node that an earlier agent left, where that is known. The driver of the
        node's GPUs writes through `driver`, or as the node does.
        """
        self.config = config
        self.workers: dict[str, PodWorker] = {}
        """By the pod's uid."""
        self._api = api
        self._driver = driver or api
        self.host = host
        self._clock = clock
        self._queue: WorkQueue[Key] = WorkQueue(clock=clock, last_retry=30.0)
        self._feed = feed
        self._cluster_network = network
        self._network: NodeNetwork | None = None
        self._tls = tls
        self._found = found
        self._listening = listening
        self._by_key: dict[Key, str] = {}
        self._supervisor = Supervisor(f"node {config.name}")
        self._server: Server | None = None
        self._leave: Callable[[], None] = lambda: None
        self._devices = Allocation(config.gpus, changed=host.show_gpus)
        self._figures = GpuFigures(config.name, self._devices, clock)
        self._models = ModelServers(clock)

    async def run(self, ready: Ready[Agent]) -> None:
        """Run the node until cancelled; then its pods end, or stay for the next agent."""
        try:
            async with self._supervisor:
                try:
                    await self._open()
                    ready(self)
                    await asyncio.get_running_loop().create_future()
                finally:
                    self._leave()
                    self._queue.close()
        finally:
            for worker in self.workers.values():
                worker.release()
            if self._server is not None:
                await self._server.close(grace=_GOODBYE)
            await self._figures.aclose()
            await self._models.aclose()
            await self.host.close(keep=self.config.keep_pods)
            if self._network is not None:
                self._network.close()

    async def _open(self) -> None:
        await self.host.open()
        if self.config.serves:
            kubelet = KubeletApi(self.config, self.host, self._clock, self.workers, self._dial)
            self._server = await serve(kubelet.handle, host=self.config.address, tls=self._tls)
            self._listening(self.config.name, self.address)
        if self.config.gpus:
            await self.host.install_gpus(self._devices.gpus)
        directory = self.host.volumes_root
        if directory is not None and self._cluster_network is not None:
            self._network = NodeNetwork(self._cluster_network, self.config.name, directory)
        facts = self.host.facts()
        claimed = registration.claimed_memory(self.config)
        if claimed > facts.memory:
            await self.host.show_memory(claimed)
        recorder = Recorder(self._api, self._clock)
        self._context = NodeContext(
            api=self._api,
            host=self.host,
            clock=self._clock,
            config=self.config,
            recorder=recorder,
            addresses=Addresses(self._prefix()),
            network=self._network,
            services=self._feed.services,
            figures=self._figures,
            models=self._models,
            driver=self._driver,
            allocatable=registration.capacity(self.config, facts),
            wake=self._queue.add,
        )
        self._preparation = self._prepare()
        presence = Presence(
            self._api,
            self.config,
            facts,
            self._clock,
            port=self._server.address[1] if self._server is not None else 0,
        )
        self._supervisor.spawn("events", recorder.run())
        await presence.register(self._found)
        await self._adopt()
        self._leave = self._feed.listen(self.config.name, self._queue.add)
        for number in range(self.config.workers):
            self._supervisor.spawn(f"worker {number}", self._work())
        self._supervisor.spawn("heartbeat", presence.heartbeat())
        if self.host.volumes_root is not None:
            self._supervisor.spawn("volumes", self._refresh())

    def _prefix(self) -> str:
        """The first three parts of the node's pod addresses."""
        if self._network is not None:
            return self._network.prefix
        return network_of(self.config.name)

    async def _dial(self, process: Process, port: int) -> tuple[str, int]:
        return await self._context.dial(process, port)

    def _prepare(self) -> Preparation:
        root = self.host.volumes_root
        if root is None:
            return Preparation(self._context, self._devices)
        return RealPreparation(self._context, root, self._devices)

    @property
    def address(self) -> tuple[str, int]:
        """Where the kubelet API listens."""
        assert self._server is not None
        return self._server.address

    # The pods.

    async def _adopt(self) -> None:
        """Take over the runs that an earlier agent left, and end those of pods that are gone."""
        runs: dict[str, list[Process]] = {}
        for process in sorted(await self.host.adopt(), key=lambda process: process.key.attempt):
            runs.setdefault(process.key.pod_uid, []).append(process)
        known = {pod.metadata.uid: pod for pod in self._feed.pods_of(self.config.name)}
        for uid, bound in known.items():
            if bound.status.pod_ip and not bound.spec.host_network:
                self._context.addresses.take(uid, bound.status.pod_ip)
        for uid, processes in runs.items():
            pod = known.get(uid)
            if pod is None:
                for process in processes:
                    process.kill()
                    await process.ended
                await self.host.forget(uid)
                continue
            worker = self._new_worker(pod)
            for process in processes:
                self._devices.recall(pod, process.key.container, process.env.get(VARIABLE, ""))
                self._preparation.adopt(pod, process)
                worker.adopt(process)

    async def _work(self) -> None:
        while True:
            async with self._queue.work() as key:
                try:
                    await self._sync(key)
                except (errors.KvestigateError, OSError):
                    self._queue.retry(key)
                except Exception:  # noqa: BLE001 - one odd pod must not stop the others
                    _log.exception("pod %s failed, and will be tried again", key)
                    self._queue.retry(key)
                else:
                    self._queue.forget(key)

    async def _sync(self, key: Key) -> None:
        pod = self._feed.pods.get(key)
        if pod is not None and pod.spec.node_name != self.config.name:
            pod = None
        before = self._by_key.get(key)
        if before is not None and (pod is None or pod.metadata.uid != before):
            worker = self.workers.pop(before)
            del self._by_key[key]
            await worker.discard()
        if pod is None:
            return
        worker_or_none = self.workers.get(pod.metadata.uid)
        if worker_or_none is None and pod.finished:
            # It ended under an earlier agent: nothing to run, but its deletion waits for us.
            await confirm_deletion(self._api, pod)
            return
        worker = worker_or_none or self._new_worker(pod)
        wake_at = await worker.sync(pod)
        if wake_at is not None:
            self._queue.add_after(key, max(wake_at - self._clock.now(), 0.001))

    def _new_worker(self, pod: Pod) -> PodWorker:
        worker = PodWorker(pod, self._context, self._preparation)
        self.workers[pod.metadata.uid] = worker
        self._by_key[key_of(pod)] = pod.metadata.uid
        return worker

    async def _refresh(self) -> None:
        """Keep the files of volumes current, and tokens alive."""
        while True:
            await self._clock.routine().sleep(self.config.refresh)
            for worker in list(self.workers.values()):
                if not worker.finished:
                    try:
                        await self._preparation.refresh(worker.pod)
                    except (errors.KvestigateError, OSError):
                        pass  # the next round will try again
