"""Simulated nodes of a plane: one for every Node object, and a few in a plane that has none.

Creating a Node object starts a simulated node, with the capacity in its status or that of a common
server. A Node annotated `kvestigate.dev/simulate: "false"` is not simulated: its own kubelet
reports for it, or nobody does, which is how the loss of a node is rehearsed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kvestigate.aio.clock import Clock
from kvestigate.aio.supervisor import Ready, Supervisor
from kvestigate.client.api import Api
from kvestigate.client.cache import Change
from kvestigate.cluster.node.agent.agent import Agent, Identify
from kvestigate.cluster.node.agent.feed import Feed
from kvestigate.cluster.node.agent.registration import NODES
from kvestigate.cluster.node.config import SELDOM, NodeConfig
from kvestigate.cluster.node.volumes.sources import Sources
from kvestigate.cluster.workforce.recalling import RecalledHost
from kvestigate.kube.views.core import Node

ANNOTATION = "kvestigate.dev/simulate"
_PLAIN = NodeConfig("", serves=False, workers=1, terse=True, heartbeat=SELDOM)
"""Without a port, with one worker, as nothing it does takes long, and without what would be more
than half of what a node writes. Its lease is renewed in time, not more often."""


class Nodes:
    """Starts and ends the agents of a plane. Entering returns when the first are registered."""

    def __init__(
        self, api: Api, clock: Clock, count: int, *, identify: Identify | None = None
    ) -> None:
        """`identify` connects as a node; without it, all nodes act through `api`."""
        self._identify: Identify = identify or (lambda node: api)
        self._clock = clock
        self._count = count
        self._feed = Feed(api)
        self._nodes = api.informer(NODES, type=Node)
        self._supervisor = Supervisor("nodes")
        self._agents: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Nodes:
        await self._supervisor.__aenter__()
        await self._feed.services.start(self._supervisor, "services")
        await self._feed.pods.start(self._supervisor, "pods")
        await self._nodes.start(self._supervisor, "nodes")
        if not len(self._nodes):
            for number in range(1, self._count + 1):
                await self._begin(replace(_PLAIN, name=f"node-{number}"))
        for node in sorted(self._nodes, key=lambda item: item.metadata.name):
            await self._found(node)
        self._nodes.subscribe(self._heard)
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self._supervisor.__aexit__(*exc)

    def _heard(self, change: Change[Node]) -> None:
        name = change.key.name
        if change.new is None or not is_simulated(change.new.metadata.annotations):
            agent = self._agents.pop(name, None)
            if agent is not None:
                agent.cancel()
        elif name not in self._agents:
            self._supervisor.spawn(f"start of {name}", self._found(change.new))

    async def _found(self, node: Node) -> None:
        if node.metadata.name not in self._agents and is_simulated(node.metadata.annotations):
            await self._begin(_config(node), node)

    async def _begin(self, config: NodeConfig, found: Node | None = None) -> None:
        api = self._identify(config.name)
        host = RecalledHost(self._clock, self._feed, Sources(api), config.name)
        agent = Agent(api, host, config, clock=self._clock, feed=self._feed, found=found)
        ready: Ready[Agent] = Ready()
        self._agents[config.name] = self._supervisor.spawn(config.name, agent.run(ready))
        await ready.told


MISSING_IMAGES = "kvestigate.dev/missing-images"
"""Patterns of images that the node does not find anywhere, with commas between them."""


def is_simulated(annotations: Mapping[str, str]) -> bool:
    return annotations.get(ANNOTATION) != "false"


def _config(node: Node) -> NodeConfig:
    metadata = node.metadata
    missing = metadata.annotations.get(MISSING_IMAGES, "")
    return replace(
        _PLAIN,
        name=metadata.name,
        labels=metadata.labels,
        annotations=metadata.annotations,
        capacity=node.status.capacity,
        missing_images=tuple(filter(None, missing.split(","))),
    )
