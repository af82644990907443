"""What has to be asked of the cluster before a request can be judged."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.app.held import HeldInPods, held_in_pods, wanted_in_pods
from kvestigate.app.spec import AppSpec
from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.cybernet.ledger import Discover, Found
from kvestigate.cybernet.quotas import Holding, holder_of
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.errors import Forbidden, NotFound
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import reach
from kvestigate.snapshot import listings
from kvestigate.snapshot.capacity import NodeCapacity, capacities, requested
from kvestigate.snapshot.collect import take
from kvestigate.workspace import lifecycle


@dataclass(frozen=True, slots=True)
class There:
    """A workspace that is on a host."""

    owner: str
    gpus: tuple[int, ...]


async def capacity_of(access: Access, node: str) -> NodeCapacity | None:
    """What a node has and what of it is taken, now; None if there is no such node."""
    async with connect(access) as api:
        snapshot = await take(api, (listings.NODES, listings.PODS))
    if not snapshot.knows(listings.NODES, listings.PODS):
        raise Unavailable(
            "free capacity is unknown: nodes and pods cannot be listed",
            "constraints.hosts.require",
        )
    found = capacities(snapshot.of(listings.NODES), snapshot.derived(requested))
    return next((it for it in found if it.name == node), None)


def discovery(access: Access, via: NodeAccess) -> Discover:
    """How a ledger finds the workspaces of a cluster."""

    async def discover(nodes: tuple[str, ...]) -> Found:
        async with connect(access) as api:
            apps, uncounted = await _apps(api)
            try:
                hosts = await reach(api, via)
            except NotFound as error:
                return Found(apps, uncounted=uncounted, no_way=error)
            asked = {it: host for it, host in hosts.nodes.items() if not nodes or it in nodes}
            status = await lifecycle.look(asked)
        # Where the DaemonSet has no pod nobody can have made a workspace.
        silent = {
            node: why
            for node, why in hosts.unreachable.items()
            if (not nodes or node in nodes) and node not in hosts.bare
        } | status.unreachable
        workspaces = [
            Holding(it.node, it.name, holder_of(it.owner), len(it.gpus), it.tmpfs_bytes)
            for it in status.workspaces
        ]
        answered = frozenset(asked.keys() - status.unreachable.keys())
        return Found([*apps, *workspaces], answered, silent, uncounted)

    return discover


async def _apps(api: Api) -> tuple[list[Holding], Forbidden | None]:
    """Those in pods, or why they cannot be counted."""
    try:
        return [_holding(it) for it in await held_in_pods(api)], None
    except Forbidden as error:
        return [], error


def app_holding(spec: AppSpec, holder: str) -> Holding:
    """What an App in pods would hold."""
    return _holding(wanted_in_pods(spec, holder))


def _holding(it: HeldInPods) -> Holding:
    return Holding("", f"{it.namespace}/{it.name}", it.holder, it.gpus, it.memory, it.pods)


async def workspace_on(access: Access, via: NodeAccess, node: str, name: str) -> There | None:
    """The workspace of that name; None if there is none."""
    async with connect(access) as api:
        hosts = await reach(api, via)
        if why := hosts.unreachable.get(node):
            raise _silent(node, why)
        status = await lifecycle.look({node: hosts.host(node)})
    if why := status.unreachable.get(node):
        raise _silent(node, why)
    for it in status.workspaces:
        if it.name == name:
            return There(it.owner, tuple(gpu.index for gpu in it.gpus))
    return None


def _silent(node: str, why: str) -> Unavailable:
    return Unavailable(f"node {node!r} cannot be reached: {why}", "hosts")
