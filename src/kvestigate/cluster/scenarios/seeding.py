"""Brings what a scenario says into a cluster whose nodes are there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from kvestigate.client.api import Api
from kvestigate.cluster.node.agent.registration import node_object, node_status
from kvestigate.cluster.node.gpu.slices import resource_slices
from kvestigate.cluster.node.hosts.simulated import FACTS
from kvestigate.cluster.scenarios.nodes import NodePlan
from kvestigate.cluster.scenarios.objects import resource_of
from kvestigate.errors import AlreadyExists
from kvestigate.kube import builtins

_NODES = builtins.resource("nodes")
_ACCOUNTS = builtins.resource("serviceaccounts")
_AT_ONCE = 64

Manifest = Mapping[str, Any]


async def seed(
    api: Api, manifests: Iterable[Manifest], plans: Iterable[NodePlan], now: float
) -> None:
    """Create everything; what is there already stays as it is."""
    for plan in plans:
        if plan.lost:
            await _lose(api, plan, now)
        if plan.cordoned:
            patch = {"spec": {"unschedulable": True}}
            await api.patch(_NODES, plan.config.name, patch, type=bytes)
    # What is of one kind in a row does not depend on each other. One by one, each would wait
    # behind all that controllers do about those before it.
    for _, alike in groupby(manifests, key=lambda manifest: manifest["kind"]):
        for batch in _batches(alike):
            await asyncio.gather(*(_create(api, manifest) for manifest in batch))


def _batches(manifests: Iterable[Manifest]) -> Iterator[list[Manifest]]:
    source = iter(manifests)
    while batch := list(islice(source, _AT_ONCE)):
        yield batch


async def _create(api: Api, manifest: Manifest) -> None:
    with suppress(AlreadyExists):
        await api.create(resource_of(manifest), manifest, type=bytes)
    if manifest["kind"] == "Namespace":
        # No pod may be created without it; a controller would make it in a while.
        account = {"metadata": {"name": "default", "namespace": manifest["metadata"]["name"]}}
        with suppress(AlreadyExists):
            await api.create(_ACCOUNTS, account, type=bytes)


async def _lose(api: Api, plan: NodePlan, now: float) -> None:
    """Create a node whose kubelet does not report any more."""
    try:
        made = await api.create(_NODES, node_object(plan.config, _FACTS))
    except AlreadyExists:
        return
    for each in resource_slices(plan.config.name, made["metadata"]["uid"], plan.config.gpus):
        await _create(api, each)
    status = node_status(plan.config, _FACTS, port=10250, now=now, since=now)
    for condition in status["conditions"]:
        condition |= {
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
    patch = {"status": status}
    await api.patch(_NODES, plan.config.name, patch, subresource="status", type=bytes)


_FACTS = replace(FACTS, os_image="Lost Linux", runtime="kvestigate-lost://1", limits=())
