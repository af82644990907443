"""`scale`: set the number of replicas of a Deployment or another workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named
from kvestigate.errors import UsageError
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.workloads import Deployment
from kvestigate.operation import Effect, Operation
from kvestigate.render.blocks import Block, Tone, text
from kvestigate.render.human import counted


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    name: str
    """Of a Deployment, or `statefulset/NAME`."""
    replicas: int
    apply: bool = False
    """False: only show the plan."""


@dataclass(frozen=True, slots=True)
class Scaling:
    kind: str
    """`deployment`"""
    namespace: str
    name: str
    before: int
    after: int
    applied: bool


async def scale(access: Access, options: ScaleOptions) -> Scaling:
    """In the namespace of `access`."""
    resource, name = _named(options.name)
    async with connect(access) as api:
        # All workloads that can be scaled have `spec.replicas` like a Deployment.
        workload: Deployment = await get_named(api, resource, name, Deployment)
        before = workload.spec.replicas
        if options.apply and before != options.replicas:
            await api.scale(resource, name, options.replicas)
    kind = resource.singular_name
    return Scaling(kind, access.namespace, name, before, options.replicas, options.apply)


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


OPERATION = Operation(
    name="scale",
    summary="Set the number of replicas of a Deployment; 0 stops it without deleting it.",
    input=ScaleOptions,
    output=Scaling,
    effect=Effect.WRITE,
    handler=scale,
)
