"""Brings what a scenario says into a cluster whose nodes are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import AlreadyExists
from kvestigate.kube import builtins
from kvestigate.local.scenarios.nodes import NodePlan
from kvestigate.local.scenarios.objects import resource_of
from kvestigate.node.hosts.interface import Facts
from kvestigate.node.registration import node_object, node_status

_NODES = builtins.resource("nodes")
_ACCOUNTS = builtins.resource("serviceaccounts")


async def seed(
    api: Api, manifests: Iterable[Mapping[str, Any]], plans: Iterable[NodePlan], now: float
) -> None:
    """Create everything; what is there already stays as it is."""
    for plan in plans:
        if plan.lost:
            await _lose(api, plan, now)
        if plan.cordoned:
            patch = {"spec": {"unschedulable": True}}
            await api.patch(_NODES, plan.config.name, patch, type=bytes)
    for manifest in manifests:
        try:
            await api.create(resource_of(manifest), manifest, type=bytes)
        except AlreadyExists:
            continue
        if manifest["kind"] == "Namespace":
            await _account(api, manifest["metadata"]["name"])


async def _account(api: Api, namespace: str) -> None:
    """Wait for the account without which no pod may be created in the namespace."""
    selection = Selection(namespace, fields="metadata.name=default")
    async with api.watch(_ACCOUNTS, selection, type=bytes) as events:
        async for _ in events:
            return


async def _lose(api: Api, plan: NodePlan, now: float) -> None:
    """A node of which nobody has heard for a while."""
    try:
        await api.create(_NODES, node_object(plan.config, _FACTS), type=bytes)
    except AlreadyExists:
        return
    status = node_status(plan.config, _FACTS, port=10250, now=now, since=now)
    for condition in status["conditions"]:
        condition |= {
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
    patch = {"status": status}
    await api.patch(_NODES, plan.config.name, patch, subresource="status", type=bytes)


_FACTS = Facts(
    os_image="Lost Linux",
    kernel="6.8.0",
    architecture="amd64",
    operating_system="linux",
    runtime="kvestigate-lost://1",
    boot_id="00000000-0000-0000-0000-000000000000",
    machine_id="0" * 32,
    cpu=32,
    memory=128 * 1024**3,
    disk=1024**4,
)
