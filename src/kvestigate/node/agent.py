"""The agent of one node.

    async with Agent(api, host, NodeConfig("node-1")) as agent:
        ...  # the Node is registered, Ready, and its pods run

Entering returns when the node is registered, has found the pods of an earlier agent and
follows its own; leaving ends the pods, or keeps them for the next agent (`keep_pods`).
"""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime
from types import TracebackType

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.aio.workqueue import WorkQueue
from kvestigate.client.api import PODS, Api, PatchType
from kvestigate.client.call import Selection
from kvestigate.client.informer import Change, Informer, Key, key_of
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.network import Service
from kvestigate.node import registration
from kvestigate.node.addresses import Addresses
from kvestigate.node.config import NodeConfig
from kvestigate.node.events import Recorder
from kvestigate.node.hosts.interface import Host, Process
from kvestigate.node.kubelet_api import KubeletApi
from kvestigate.node.pods import Pod
from kvestigate.node.registration import LEASE_NAMESPACE, LEASES, NODES
from kvestigate.node.station import Station
from kvestigate.node.volumes import Volumes
from kvestigate.node.worker import PodWorker
from kvestigate.wire.certificates import CertificateAuthority
from kvestigate.wire.server import Server, serve
from kvestigate.wire.tls import server_context

SERVICES = Resource("", "v1", "services", "Service")

_GOODBYE = 1.0
"""Seconds that open streams get when the agent stops."""
_WORKERS = 8
"""Pods worked on at once: each spends most of its time waiting for the API or a fork."""


class Agent:
    """Runs the pods of one node."""

    def __init__(self, api: Api, host: Host, config: NodeConfig, *, clock: Clock = WALL) -> None:
        self.config = config
        self.workers: dict[str, PodWorker] = {}
        """By the pod's uid."""
        self._api = api
        self._host = host
        self._clock = clock
        self._queue: WorkQueue[Key] = WorkQueue(clock=clock, last_retry=30.0)
        self._pods: Informer[Pod] = api.informer(
            PODS, Selection(fields=f"spec.nodeName={config.name}"), type=Pod
        )
        self._by_key: dict[Key, str] = {}
        self._supervisor = Supervisor(f"node {config.name}")
        self._node_uid = ""
        self._since = 0.0
        self._server: Server | None = None

    async def __aenter__(self) -> Agent:
        await self._supervisor.__aenter__()
        try:
            await self._open()
        except BaseException as failure:
            await self.__aexit__(type(failure), failure, failure.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._queue.close()
        try:
            await self._supervisor.__aexit__(kind, error, traceback)
        finally:
            for worker in self.workers.values():
                worker.release()
            if self._server is not None:
                await self._server.close(grace=_GOODBYE)
            await self._host.close(keep=self.config.keep_pods)

    async def run(self, ready: Ready[Agent]) -> None:
        """The same as a task for a supervisor: until cancelled."""
        async with self:
            ready(self)
            await asyncio.get_running_loop().create_future()

    async def _open(self) -> None:
        await self._host.open()
        kubelet = KubeletApi(self.config, self._host, self._clock, self.workers)
        self._server = await serve(
            kubelet.handle, host=self.config.address, port=self.config.port, tls=self._tls()
        )
        recorder = Recorder(self._api, self._clock, node=self.config.name)
        services: Informer[Service] = self._api.informer(SERVICES, type=Service)
        self._station = Station(
            api=self._api,
            host=self._host,
            clock=self._clock,
            config=self.config,
            recorder=recorder,
            addresses=Addresses(self.config.name),
            services=services,
            allocatable=registration.capacity(self.config, self._host.facts()),
            wake=self._queue.add,
        )
        self._volumes = Volumes(
            self._host.volumes_root, token=self._station.token, claim=self._station.claim
        )
        self._supervisor.spawn("events", recorder.run())
        await self._register()
        await self._supervisor.start("services", services.run)
        await self._supervisor.start("pods", self._pods.run)
        await self._adopt()
        self._pods.subscribe(self._on_change)
        for number in range(_WORKERS):
            self._supervisor.spawn(f"worker {number}", self._work())
        self._supervisor.spawn("heartbeat", self._heartbeat())

    @property
    def address(self) -> tuple[str, int]:
        """Where the kubelet API listens."""
        assert self._server is not None
        return self._server.address

    def _tls(self) -> ssl.SSLContext:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        names = [self.config.address, self.config.name]
        pair = self.config.serving
        if pair is None:
            authority = CertificateAuthority.create(f"kubelet {self.config.name}", now=now)
            pair = authority.issue_server(f"system:node:{self.config.name}", names, now=now)
        return server_context(
            certificate=pair.certificate, key=pair.key, client_ca=self.config.client_ca
        )

    # The node.

    async def _register(self) -> None:
        self._since = self._clock.now()
        facts = self._host.facts()
        node = registration.node_object(self.config)
        node["metadata"]["labels"] = registration.labels(self.config, facts)
        try:
            created = await self._api.create(NODES, node)
        except errors.AlreadyExists:
            change = {"metadata": {"labels": node["metadata"]["labels"]}}
            created = await self._api.patch(NODES, self.config.name, change)
        self._node_uid = created["metadata"]["uid"]
        await self._report()
        await self._renew()

    async def _report(self) -> None:
        status = registration.node_status(
            self.config,
            self._host.facts(),
            port=self.address[1],
            now=self._clock.now(),
            since=self._since,
        )
        await self._api.patch(
            NODES,
            self.config.name,
            {"status": status},
            PatchType.STRATEGIC,
            subresource="status",
            type=bytes,
        )

    async def _renew(self) -> None:
        now = self._clock.now()
        change = {"spec": {"renewTime": registration.micro_stamp(now)}}
        try:
            await self._api.patch(
                LEASES, self.config.name, change, namespace=LEASE_NAMESPACE, type=bytes
            )
        except errors.NotFound:
            lease = registration.lease_object(self.config, now, self._node_uid)
            await self._api.create(LEASES, lease, namespace=LEASE_NAMESPACE, type=bytes)

    async def _heartbeat(self) -> None:
        reported = self._clock.now()
        while True:
            await self._clock.sleep(self.config.heartbeat)
            try:
                await self._renew()
                if self._clock.now() - reported >= self.config.report:
                    await self._report()
                    reported = self._clock.now()
            except errors.KvestigateError:
                pass  # the lease says by its age that we could not

    # The pods.

    async def _adopt(self) -> None:
        """Take over the runs that an earlier agent left, and end those of pods that are gone."""
        runs: dict[str, list[Process]] = {}
        for process in sorted(await self._host.adopt(), key=lambda one: one.key.attempt):
            runs.setdefault(process.key.pod_uid, []).append(process)
        known = {pod.metadata.uid: pod for pod in self._pods}
        for uid, processes in runs.items():
            pod = known.get(uid)
            if pod is None:
                for process in processes:
                    process.kill()
                    await process.ended
                await self._host.forget(uid)
                continue
            worker = self._new_worker(pod)
            for process in processes:
                worker.adopt(process)

    def _on_change(self, change: Change[Pod]) -> None:
        self._queue.add(change.key)

    async def _work(self) -> None:
        while True:
            async with self._queue.work() as key:
                try:
                    await self._sync(key)
                except errors.KvestigateError:
                    self._queue.retry(key)
                else:
                    self._queue.forget(key)

    async def _sync(self, key: Key) -> None:
        pod = self._pods.get(key)
        before = self._by_key.get(key)
        if before is not None and (pod is None or pod.metadata.uid != before):
            worker = self.workers.pop(before)
            del self._by_key[key]
            await worker.discard()
        if pod is None:
            return
        worker_or_none = self.workers.get(pod.metadata.uid)
        if worker_or_none is None and pod.status.phase in ("Succeeded", "Failed"):
            await self._bury(pod)
            return
        worker = worker_or_none or self._new_worker(pod)
        wake_at = await worker.sync(pod)
        if wake_at is not None:
            self._queue.add_after(key, max(wake_at - self._clock.now(), 0.001))

    def _new_worker(self, pod: Pod) -> PodWorker:
        worker = PodWorker(pod, self._station, self._volumes)
        self.workers[pod.metadata.uid] = worker
        self._by_key[key_of(pod)] = pod.metadata.uid
        return worker

    async def _bury(self, pod: Pod) -> None:
        """A pod that ended under an earlier agent: nothing to run, but deletion waits for us."""
        if pod.terminating:
            try:
                await self._api.delete(
                    PODS,
                    pod.metadata.name,
                    namespace=pod.metadata.namespace,
                    grace_seconds=0,
                    uid=pod.metadata.uid,
                    type=bytes,
                )
            except (errors.NotFound, errors.Conflict):
                pass
