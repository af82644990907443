"""What has to be asked of the cluster before a request can be judged."""

from __future__ import annotations

from dataclasses import dataclass

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.cybernet.ledger import Discover, Found
from kvestigate.cybernet.quotas import Holding
from kvestigate.cybernet.refusals import Unavailable
from kvestigate.observe import listings
from kvestigate.observe.capacity import NodeCapacity, capacities, requested
from kvestigate.observe.snapshot import take
from kvestigate.workspace import lifecycle
from kvestigate.workspace.options import StatusOptions


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
            "nodes and pods cannot be listed, so nobody knows what is free",
            "constraints.hosts.require",
        )
    found = capacities(snapshot.of(listings.NODES), snapshot.derived(requested))
    return next((it for it in found if it.name == node), None)


def discovery(access: Access) -> Discover:
    """How a ledger finds the workspaces of a cluster."""

    async def discover(nodes: tuple[str, ...]) -> Found:
        status = await lifecycle.status(access, StatusOptions(nodes))
        return Found(
            [
                Holding(it.node, it.name, it.owner, len(it.gpus), it.tmpfs_bytes)
                for it in status.workspaces
            ],
            frozenset(status.unreachable),
        )

    return discover


async def workspace_on(access: Access, node: str, name: str) -> There | None:
    """The workspace of that name; None if there is none."""
    status = await lifecycle.status(access, StatusOptions((node,)))
    if node in status.unreachable:
        raise Unavailable(f"node {node!r} cannot be reached: {status.unreachable[node]}", "hosts")
    for it in status.workspaces:
        if it.name == name:
            return There(it.owner, tuple(gpu.index for gpu in it.gpus))
    return None
