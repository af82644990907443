"""Finding the targets of a fan-out in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named
from kvestigate.errors import NotFound
from kvestigate.fanout.targets import (
    TargetKind,
    TargetOptions,
    Targets,
    chosen_hosts,
    chosen_pods,
)
from kvestigate.kube import builtins
from kvestigate.kube.selectors import from_label_selector, parse_labels
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.pods import Pod
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import reach
from kvestigate.operation import Context

DEPLOYMENTS = builtins.resource("deployments.apps")
REPLICA_SETS = builtins.resource("replicasets.apps")


async def collect(context: Context, options: TargetOptions) -> Targets:
    async with aimed(context, options) as (_, targets):
        return targets


@asynccontextmanager
async def aimed(context: Context, options: TargetOptions) -> AsyncIterator[tuple[Api, Targets]]:
    """A connection for the block, and the targets."""
    options.check()
    access = context.access
    if options.namespace:
        access = replace(access, namespace=options.namespace)
    async with connect(access) as api:
        yield api, await resolve(api, options, context.via)


async def resolve(api: Api, options: TargetOptions, via: NodeAccess) -> Targets:
    """The selected targets. Raises NotFound if there are none."""
    if options.target is TargetKind.NODES:
        targets = chosen_hosts(await reach(api, via), options)
    elif options.target is TargetKind.PODS:
        targets = chosen_pods(await _pods(api, options), options)
    else:
        targets = chosen_pods(await _pods_of_deployment(api, options.deployment), options)
    if not targets.found and not targets.unreachable:
        raise _nothing(api, options)
    return targets


async def _pods(api: Api, options: TargetOptions) -> Iterable[Pod]:
    if options.pods:
        pods = await asyncio.gather(
            *(get_named(api, PODS, name, Pod) for name in dict.fromkeys(options.pods))
        )
        selector = parse_labels(options.selector)
        return [pod for pod in pods if selector.matches(pod.metadata.labels)]
    selection = Selection(api.namespace, labels=options.selector)
    return (await api.list(PODS, selection, type=Pod)).items


async def _pods_of_deployment(api: Api, name: str) -> Iterable[Pod]:
    """The pods of its ReplicaSets; the selector alone may match other pods."""
    deployment: dict[str, Any] = await get_named(api, DEPLOYMENTS, name, dict[str, Any])
    selector = str(from_label_selector(deployment["spec"]["selector"]))
    selection = Selection(api.namespace, labels=selector)
    sets, pods = await asyncio.gather(
        api.list(REPLICA_SETS, selection, type=PartialObject),
        api.list(PODS, selection, type=Pod),
    )
    uid = deployment["metadata"]["uid"]
    owned = {item.metadata.uid for item in sets.items if _controller(item) == uid}
    return [pod for pod in pods.items if _controller(pod) in owned]


def _controller(owned: PartialObject | Pod) -> str:
    return next(
        (owner.uid for owner in owned.metadata.owner_references if owner.controller),
        "",
    )


def _nothing(api: Api, options: TargetOptions) -> NotFound:
    if options.target is TargetKind.NODES:
        return NotFound("all nodes are excluded", hint="remove an --exclude-node")
    if options.target is TargetKind.DEPLOYMENT:
        return NotFound(
            f"no pod of deployment {options.deployment!r} is running",
            hint=f"kvestigate describe deployment {options.deployment} -n {api.namespace}",
        )
    labels = f" with labels {options.selector}" if options.selector else ""
    return NotFound(
        f"no pod is running in namespace {api.namespace!r}{labels}",
        hint="try another -n; `kvestigate pods` lists the pods of all namespaces",
    )
