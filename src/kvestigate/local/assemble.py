"""Puts an embedded cluster together: a plane, controllers, a scheduler and nodes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from msgspec import structs

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.controllers.registry import CONTROLLERS
from kvestigate.controllers.rootca import RootCertificateController
from kvestigate.controllers.runtime import Factory, Manager
from kvestigate.local.directory import ClusterDirectory, Shape
from kvestigate.node.agent import Agent
from kvestigate.node.config import NodeConfig
from kvestigate.node.hosts.directory import DirectoryHost
from kvestigate.plane.serving import Listen, ServeOptions, Serving, serving

# from kvestigate.scheduler.runtime import Scheduler


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster whose nodes are Ready."""

    url: str
    shape: Shape
    """With the port that was chosen, so that the next start is at the same place."""


@asynccontextmanager
async def embedded_cluster(cluster: ClusterDirectory, shape: Shape) -> AsyncIterator[Running]:
    """A running cluster for the length of the block."""
    async with AsyncExitStack() as stack:
        options = ServeOptions(cluster.plane, Listen(port=shape.port))
        served = await stack.enter_async_context(serving(options))
        await stack.enter_async_context(Manager(_api(served), _controllers(served)))
        # await stack.enter_async_context(Scheduler(_api(served)))
        for number in range(1, shape.nodes + 1):
            await stack.enter_async_context(_agent(cluster, served, f"node-{number}"))
        port = int(served.url.rpartition(":")[2])
        yield Running(served.url, structs.replace(shape, port=port))


def _controllers(served: Serving) -> Mapping[str, Factory]:
    certificate = served.authority.pair.certificate.decode()
    publish = partial(RootCertificateController, certificate)
    return {**CONTROLLERS, "root-ca-certificate-publisher-controller": publish}


def _api(served: Serving) -> Api:
    """A connection of its own for each part, as if it were a process of its own."""
    headers = [
        ("authorization", f"Bearer {served.token}"),
        ("user-agent", "kvestigate-local"),
    ]
    return Api(InProcessTransport(served.handler, headers=headers))


def _agent(cluster: ClusterDirectory, served: Serving, name: str) -> Agent:
    now = datetime.now(UTC)
    address = "127.0.0.1"
    config = NodeConfig(
        name,
        serving=served.authority.issue_server(f"system:node:{name}", [address, name], now=now),
        client_ca=served.authority.pair.certificate,
    )
    return Agent(_api(served), DirectoryHost(cluster.nodes / name, now=time.time), config)
