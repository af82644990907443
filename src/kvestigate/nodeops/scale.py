"""`scale`: how many pods a Deployment has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.kube import builtins
from kvestigate.kube.views.workloads import Deployment
from kvestigate.operation import Effect, Operation
from kvestigate.render.blocks import Block, Tone, text

_DEPLOYMENTS = builtins.resource("deployments")


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    name: str
    replicas: int
    apply: bool = False
    """False: only look."""


@dataclass(frozen=True, slots=True)
class Scaling:
    namespace: str
    name: str
    before: int
    after: int
    applied: bool


async def scale(access: Access, options: ScaleOptions) -> Scaling:
    """In the namespace of `access`."""
    async with connect(access) as api:
        found = await api.get(
            _DEPLOYMENTS, options.name, namespace=access.namespace, type=Deployment
        )
        if options.apply and found.spec.replicas != options.replicas:
            await api.scale(
                _DEPLOYMENTS, options.name, options.replicas, namespace=access.namespace
            )
    return Scaling(
        access.namespace, options.name, found.spec.replicas, options.replicas, options.apply
    )


def scaling_blocks(done: Scaling) -> Sequence[Block]:
    where = f"deployment {done.name} in namespace {done.namespace}"
    if done.before == done.after:
        return [text(f"{where} has {done.after} replicas already")]
    change = f"{where}: {done.before} -> {done.after} replicas"
    return [text(change, Tone.GOOD) if done.applied else text(f"would scale {change}")]


OPERATION = Operation(
    name="scale",
    summary="Set how many replicas a Deployment has; 0 stops it without deleting it.",
    input=ScaleOptions,
    output=Scaling,
    effect=Effect.WRITE,
    handler=scale,
)
