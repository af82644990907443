"""`node cordon` and `node uncordon`: mark a node unschedulable or schedulable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.operation import Context, param
from kvestigate.render.blocks import Block, Tone, text

_NODES = builtins.resource("nodes")


@dataclass(frozen=True, slots=True)
class CordonOptions:
    node: Annotated[str, param("The node.", argument=True, metavar="NODE")]


@dataclass(frozen=True, slots=True)
class Cordoning:
    node: str
    before: bool
    """Whether the node was cordoned."""
    after: bool
    applied: bool


async def cordon(context: Context, options: CordonOptions) -> Cordoning:
    async with connect(context.access) as api:
        return await set_cordoned(api, options.node, True, apply=context.apply)


async def uncordon(context: Context, options: CordonOptions) -> Cordoning:
    async with connect(context.access) as api:
        return await set_cordoned(api, options.node, False, apply=context.apply)


async def set_cordoned(api: Api, node: str, wanted: bool, *, apply: bool) -> Cordoning:
    """Writes nothing if the node already is in the wanted state."""
    current: Node = await get_named(api, _NODES, node, Node)
    before = current.spec.unschedulable
    if apply and before != wanted:
        # An absent field means schedulable, and null removes it.
        await api.patch(_NODES, node, {"spec": {"unschedulable": True if wanted else None}})
    return Cordoning(node, before, wanted, apply)


def cordoning_blocks(done: Cordoning) -> Sequence[Block]:
    verb = "cordon" if done.after else "uncordon"
    if done.before == done.after:
        return [text(f"node {done.node} is already {verb}ed")]
    if done.applied:
        return [text(f"node {done.node} is {verb}ed", Tone.GOOD)]
    return [text(f"would {verb} node {done.node}")]
