"""`scale`: set the number of replicas of a Deployment or another workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named
from kvestigate.errors import Forbidden, NotFound, UsageError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.workloads import Deployment
from kvestigate.operation import Context, param
from kvestigate.render.blocks import Block, Tone, text
from kvestigate.render.human import counted


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    name: Annotated[
        str,
        param("A Deployment or StatefulSet, or replicaset/NAME.", argument=True, metavar="NAME"),
    ]
    replicas: Annotated[
        int, param("How many pods to run.", argument=True, lowest=0, highest=1_000_000)
    ]


@dataclass(frozen=True, slots=True)
class Scaling:
    kind: str
    """`deployment`"""
    namespace: str
    name: str
    before: int
    after: int
    applied: bool


async def scale(context: Context, options: ScaleOptions) -> Scaling:
    """In the namespace of the context."""
    async with connect(context.access) as api:
        resource, name = await _found(api, *_named(options.name), given="/" in options.name)
        # All workloads that can be scaled have `spec.replicas` like a Deployment.
        workload: Deployment = await get_named(api, resource, name, Deployment)
        before = workload.spec.replicas
        if context.apply and before != options.replicas:
            await api.scale(resource, name, options.replicas)
    kind = resource.singular_name
    return Scaling(kind, context.access.namespace, name, before, options.replicas, context.apply)


async def _found(api: Api, resource: Resource, name: str, *, given: bool) -> tuple[Resource, str]:
    """The Deployment or, if only a StatefulSet has a name that came without a kind, that one."""
    if given:
        return resource, name
    for kind in (resource, builtins.resource("statefulsets")):
        try:
            await api.get(kind, name, type=PartialObject)
        except (NotFound, Forbidden):
            continue
        return kind, name
    return resource, name


def _named(words: str) -> tuple[Resource, str]:
    kind, slash, name = words.rpartition("/")
    resource = builtins.resource(kind if slash else "deployments")
    if "scale" not in resource.subresources:
        raise UsageError(
            f"a {resource.singular_name} cannot be scaled",
            hint="give a Deployment, statefulset/NAME or replicaset/NAME",
        )
    return resource, name


def scaling_blocks(done: Scaling) -> Sequence[Block]:
    where = f"{done.kind} {done.name} in namespace {done.namespace}"
    if done.before == done.after:
        return [text(f"{where} already has {counted(done.after, 'replica')}")]
    change = f"{where}: {done.before} -> {done.after} replicas"
    return [text(change, Tone.GOOD) if done.applied else text(f"would scale {change}")]
