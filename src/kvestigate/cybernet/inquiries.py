"""What has to be asked of the cluster before a request can be judged."""

from __future__ import annotations

from datetime import UTC, datetime

from kvestigate.app.held import HeldInPods, held_in_pods, wanted_in_pods
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.cybernet.entries import Found, Real
from kvestigate.cybernet.ledger import Book, CountApps, Discover, Ledger
from kvestigate.cybernet.quotas import Holding, of_cyberspace
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.cybernet.spec import Cyberspace
from kvestigate.errors import Forbidden, NotFound
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import Hosts, reach
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.collect import take
from kvestigate.workspace import cordons, lifecycle
from kvestigate.workspace.running import RunState


async def capacity_of(access: Access, node: str) -> NodeCapacity | None:
    """What a node has and what of it is taken, now; None if there is no such node."""
    return next((it for it in await capacities_of(access) if it.name == node), None)


async def capacities_of(access: Access) -> tuple[NodeCapacity, ...]:
    """What each node has and what of it is taken, now."""
    async with connect(access) as api:
        snapshot = await take(api, (listings.NODES, listings.PODS))
    if not snapshot.knows(listings.NODES, listings.PODS):
        raise Unavailable(
            "free capacity is unknown: nodes and pods cannot be listed",
            "constraints.hosts.require",
        )
    return capacities(snapshot.of(listings.NODES), snapshot.derived(requested))


def ledger_of(space: Cyberspace, access: Access, via: NodeAccess) -> Ledger:
    """The ledger of a cyberspace, beside the DaemonSet that its hosts are reached through."""
    name = space.metadata.name
    book = Book(access, via.namespace, name)
    return Ledger(space, book, discovery(access, via, name), counting(access, name))


def discovery(access: Access, via: NodeAccess, cyberspace: str) -> Discover:
    """How a ledger finds what a cyberspace has in a cluster."""

    async def discover(nodes: tuple[str, ...]) -> Found:
        async with connect(access) as api:
            apps, uncounted = await _apps(api, cyberspace)
            try:
                hosts = await reach(api, via)
            except NotFound as error:
                return Found(apps=apps, uncounted=uncounted, no_way=error)
            asked = {it: host for it, host in hosts.nodes.items() if not nodes or it in nodes}
            status = await lifecycle.look(asked)
        # Where the DaemonSet has no pod nobody can have made a workspace.
        silent = {
            node: why
            for node, why in hosts.unreachable.items()
            if (not nodes or node in nodes) and node not in hosts.bare
        } | status.unreachable
        own = [view for view in status.workspaces if view.owner.startswith(f"{cyberspace}/")]
        answered = frozenset(asked.keys() - status.unreachable.keys())
        return Found(tuple(map(_real, own)), apps, answered, silent, uncounted)

    return discover


async def lift_left_cordons(access: Access, via: NodeAccess) -> tuple[str, ...]:
    """Open nodes that are cordoned for workspaces that were never made; a line for each."""
    async with connect(access) as api:
        try:
            hosts = await reach(api, via)
            return await cordons.lift(api, hosts.nodes, datetime.now(UTC))
        except (NotFound, Forbidden):  # no hosts, or none that this gateway could have cordoned
            return ()


def counting(access: Access, cyberspace: str) -> CountApps:
    """How a ledger counts the Apps in pods, which the API alone knows of."""

    async def count() -> Found:
        async with connect(access) as api:
            apps, uncounted = await _apps(api, cyberspace)
        return Found(apps=apps, uncounted=uncounted)

    return count


def _real(view: lifecycle.WorkspaceView) -> Real:
    devices = tuple(gpu.index for gpu in view.gpus)
    used = {gpu.index for run in view.runs if run.state is RunState.RUNNING for gpu in run.gpus}
    return Real(
        view.node,
        view.name,
        view.owner,
        devices,
        tuple(sorted(used.difference(devices))),
        view.memory_limit,
        view.alive,
    )


async def _apps(api: Api, cyberspace: str) -> tuple[tuple[Holding, ...], Forbidden | None]:
    """Those of a cyberspace in pods, or why they cannot be counted."""
    try:
        everything = [_holding(it) for it in await held_in_pods(api)]
    except Forbidden as error:
        return (), error
    return tuple(of_cyberspace(everything, cyberspace)), None


def app_holding(spec: AppSpec, holder: str) -> Holding:
    """What an App in pods would hold."""
    return _holding(wanted_in_pods(spec, holder))


def _holding(it: HeldInPods) -> Holding:
    return Holding("", f"{it.namespace}/{it.name}", it.holder, it.gpus, it.memory, it.pods)


async def hosts_of(access: Access, via: NodeAccess) -> Hosts:
    """The hosts that can be reached now."""
    async with connect(access) as api:
        return await reach(api, via)
