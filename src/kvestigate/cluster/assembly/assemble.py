"""Puts an embedded cluster together: a plane, controllers, a scheduler and nodes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from random import Random

from msgspec import structs

from kvestigate.aio.clock import WALL
from kvestigate.aio.turns import Turns
from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.assembly.advertising import advertise, lasting_port, own_address
from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape
from kvestigate.cluster.assembly.metrics.api import API_SERVICE, metrics_group
from kvestigate.cluster.assembly.metrics.scrape import Scraper
from kvestigate.cluster.assembly.population import populated
from kvestigate.cluster.controllers.namespaces.defaults import RootCertificateController
from kvestigate.cluster.controllers.registry import CONTROLLERS
from kvestigate.cluster.controllers.runtime import Factory, Manager
from kvestigate.cluster.controllers.storage.volumes import LOCAL_PATH
from kvestigate.cluster.node.agent.fleet import Fleet
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.hosts.interface import Host
from kvestigate.cluster.node.hosts.namespace import NamespaceHost, best_host
from kvestigate.cluster.node.hosts.simulated import SimulatedHost
from kvestigate.cluster.plane.admission.rules.kubelets import is_foreign
from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, Serving, serving
from kvestigate.cluster.plane.model.request_info import ROOT
from kvestigate.cluster.plane.model.user import Insider
from kvestigate.cluster.plane.verbs.lookup import Aggregation
from kvestigate.cluster.scenarios.model import HostKind
from kvestigate.cluster.scenarios.nodes import NodePlan
from kvestigate.cluster.scenarios.seeding import seed
from kvestigate.cluster.scheduler.runtime import Scheduler
from kvestigate.cluster.workforce.identities import (
    GPU_DRIVER,
    KUBELETS,
    MANAGER,
    METRICS,
    SCHEDULER,
    SERVER,
    Identity,
    controller,
    grants,
    kubelet,
)
from kvestigate.cluster.workforce.signers import SIGNER, signing
from kvestigate.errors import AlreadyExists
from kvestigate.kube import builtins

_ADDRESS = "127.0.0.1"
_KINDS: dict[type[Host], HostKind] = {
    NamespaceHost: HostKind.NAMESPACE,
    DirectoryHost: HostKind.DIRECTORY,
    SimulatedHost: HostKind.SIMULATED,
}


Connect = Callable[[Identity], Api]
"""The API of the cluster, as an identity."""
_EACH_ROUND = 8
"""Calls of the cluster's own parts between two looks at what comes in from outside."""


@dataclass(frozen=True, slots=True)
class Running:
    """A cluster whose nodes are Ready."""

    url: str
    shape: Shape
    """With the port that was chosen, so that the next start is at the same place."""
    host: str
    """What the nodes are made of: what `auto` has come to."""


@asynccontextmanager
async def embedded_cluster(cluster: ClusterDirectory, shape: Shape) -> AsyncIterator[Running]:
    """A running cluster for the length of the block."""
    async with AsyncExitStack() as stack:
        port = shape.port or lasting_port(_ADDRESS, Random())
        options = ServeOptions(cluster.plane, Listen(port=port))
        served = await stack.enter_async_context(serving(options))
        connect = _connections(served)
        await _grant(connect(SERVER))
        await _default_storage(connect(SERVER))
        await _serve_metrics(connect(SERVER), connect(METRICS), served.aggregation)
        if (address := own_address()) is not None:
            await advertise(connect(SERVER), address, _port(served))
        await stack.enter_async_context(
            Manager(
                connect(MANAGER),
                _controllers(served),
                identify=lambda name: connect(controller(name)),
            )
        )
        await stack.enter_async_context(Scheduler(connect(SCHEDULER)))
        population = populated(cluster, shape)
        agents = [
            (plan.config, await _host(cluster, plan)) for plan in population.plans if not plan.lost
        ]
        await stack.enter_async_context(_fleet(connect, served, agents))
        await _label(connect(SERVER), agents)
        if population.manifests is not None and not cluster.seeded.exists():
            await seed(connect(SERVER), population.manifests, population.plans, WALL.now())
            cluster.seeded.touch()
        kinds = dict.fromkeys(_KINDS[type(host)] for _, host in agents)
        made = "+".join(kind.value for kind in kinds)
        yield Running(served.url, structs.replace(shape, port=_port(served)), made)


def _port(served: Serving) -> int:
    return int(served.url.rpartition(":")[2])


def _connections(served: Serving) -> Connect:
    """A connection of its own for each identity, which acts on the root plane only."""
    turns = Turns(_EACH_ROUND)

    def connect(identity: Identity) -> Api:
        handler = partial(served.act, Insider(ROOT, identity.user))
        headers = [("user-agent", identity.agent)]
        return Api(InProcessTransport(handler, headers=headers, turns=turns))

    return connect


async def _grant(api: Api) -> None:
    """Give the parts of the cluster their rights."""
    for role in grants():
        await api.apply(builtins.resource(f"{role['kind'].lower()}s"), role, force=True, type=bytes)


async def _default_storage(api: Api) -> None:
    """A claim that names no class gets a directory of a node."""
    try:
        await api.create(builtins.resource("storageclasses"), LOCAL_PATH, type=bytes)
    except AlreadyExists:
        pass


async def _serve_metrics(api: Api, scraper: Api, aggregation: Aggregation) -> None:
    """What nodes measure becomes an API group, for `kubectl top` and autoscalers."""
    services = builtins.resource("apiservices")
    try:
        await api.create(services, API_SERVICE, type=bytes)
    except AlreadyExists:
        pass
    aggregation.serve(metrics_group(Scraper(scraper, WALL)))


def _controllers(served: Serving) -> Mapping[str, Factory]:
    certificate = served.authority.pair.certificate.decode()
    publish = partial(RootCertificateController, certificate)
    return {
        **CONTROLLERS,
        "root-ca-certificate-publisher-controller": publish,
        SIGNER: signing(served.authority, ROOT),
    }


def _fleet(connect: Connect, served: Serving, agents: Sequence[tuple[NodeConfig, Host]]) -> Fleet:
    reached = (_ADDRESS, _port(served))
    kubelets = served.kubelet_authority(ROOT)
    return Fleet(
        connect(KUBELETS),
        [(_with_own_labels(replace(config, api_address=reached)), host) for config, host in agents],
        serving=kubelets.issue_server("system:node", [_ADDRESS], now=datetime.now(UTC)),
        client_ca=kubelets.pair.certificate,
        listening=partial(served.backends.register, ROOT),
        identify=lambda node: connect(kubelet(node)),
        driver=connect(GPU_DRIVER),
    )


def _with_own_labels(config: NodeConfig) -> NodeConfig:
    labels = {key: value for key, value in config.labels.items() if not is_foreign(key)}
    return replace(config, labels=labels)


async def _label(api: Api, agents: Sequence[tuple[NodeConfig, Host]]) -> None:
    """Set the labels that no kubelet may set of its node, such as its role."""
    for config, _ in agents:
        labels = {key: value for key, value in config.labels.items() if is_foreign(key)}
        if labels:
            change = {"metadata": {"labels": labels}}
            await api.patch(builtins.resource("nodes"), config.name, change, type=bytes)


async def _host(cluster: ClusterDirectory, plan: NodePlan) -> Host:
    name = plan.config.name
    directory = cluster.nodes / name
    if plan.host is HostKind.SIMULATED:
        return SimulatedHost(WALL)
    if plan.host is HostKind.DIRECTORY:
        return DirectoryHost(directory, now=time.time)
    if plan.host is HostKind.NAMESPACE:
        return NamespaceHost(directory, name, now=time.time)
    return await best_host(directory, name, now=time.time)
