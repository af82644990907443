"""The nodes of one process: one watch, one certificate, one agent each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType

from kvestigate.aio.clock import WALL, Clock
from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import Api
from kvestigate.cluster.node.agent.agent import Agent, Identify, Listening, nobody
from kvestigate.cluster.node.agent.feed import Feed
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.interface import Host
from kvestigate.cluster.node.hosts.seccomp import obstacle
from kvestigate.cluster.node.net.network import ClusterNetwork
from kvestigate.http.certificates import CertificateAuthority, KeyPair
from kvestigate.http.tls import server_context

_AT_ONCE = 32


class Fleet:
    """Nodes that come and go together. Entering returns when all are registered.

    With `client_ca`, callers of the kubelet APIs need a certificate of it. Without a certificate
    for `serving`, a new self-signed one is made. `listening` is told where the kubelet API of each
    node listens. `identify` connects as a node; without it, all nodes act through `api`. `driver`
    connects as the driver of simulated GPUs; without it, the driver acts through `api`, too.
    """

    def __init__(
        self,
        api: Api,
        nodes: Sequence[tuple[NodeConfig, Host]],
        *,
        clock: Clock = WALL,
        serving: KeyPair | None = None,
        client_ca: bytes | None = None,
        listening: Listening = nobody,
        identify: Identify | None = None,
        driver: Api | None = None,
    ) -> None:
        identify = identify or (lambda node: api)
        self._feed = Feed(api)
        self._network = _network(api, self._feed, nodes)
        self._clock = clock
        self._watching = Supervisor("fleet")
        self._running = Supervisor("fleet")
        serving = serving or _self_signed(clock)
        tls = server_context(certificate=serving.certificate, key=serving.key, client_ca=client_ca)
        self.agents = [
            Agent(
                identify(config.name),
                host,
                replace(config, client_ca=client_ca),
                clock=clock,
                feed=self._feed,
                network=self._network,
                tls=tls,
                listening=listening,
                driver=driver or api,
            )
            for config, host in nodes
        ]

    async def __aenter__(self) -> Fleet:
        await self._watching.__aenter__()
        await self._running.__aenter__()
        try:
            await self._feed.services.start(self._watching, "services")
            await self._feed.pods.start(self._watching, "pods")
            if self._network is not None:
                await self._watching.start("network", self._network.run)
            room = asyncio.Semaphore(_AT_ONCE)
            async with asyncio.TaskGroup() as group:
                for agent in self.agents:
                    group.create_task(self._start(agent, room))
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
        """The agents first: they still need the watch."""
        try:
            await self._running.__aexit__(kind, error, traceback)
        finally:
            await self._watching.__aexit__(kind, error, traceback)

    async def _start(self, agent: Agent, room: asyncio.Semaphore) -> None:
        async with room:
            await self._running.start(agent.config.name, agent.run)


def _network(
    api: Api, feed: Feed, nodes: Sequence[tuple[NodeConfig, Host]]
) -> ClusterNetwork | None:
    """The network of all nodes that run processes; None if the kernel does not allow one."""
    real = [config for config, host in nodes if host.volumes_root is not None]
    if not real or obstacle():
        return None
    return ClusterNetwork(api, feed.services, api_address=real[0].api_address)


def _self_signed(clock: Clock) -> KeyPair:
    now = datetime.fromtimestamp(clock.now(), UTC)
    authority = CertificateAuthority.create("kubelets", now=now)
    return authority.issue_server("system:node:kubelets", ["127.0.0.1"], now=now)
