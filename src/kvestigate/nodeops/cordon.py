"""`node cordon` and `node uncordon`: mark a node unschedulable or schedulable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.named import get_named
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.operation import Context, param
from kvestigate.render.blocks import Block, Tone, text

_NODES = builtins.resource("nodes")

CORDONED_FOR = "kvestigate.dev/cordoned-for"
"""The annotation that says what a node is cordoned for."""


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
    reason_before: str = ""
    """What the node said that it was cordoned for; empty if a person cordoned it."""


async def cordon(context: Context, options: CordonOptions) -> Cordoning:
    async with connect(context.access) as api:
        return await set_cordoned(api, options.node, True, apply=context.apply)


async def uncordon(context: Context, options: CordonOptions) -> Cordoning:
    async with connect(context.access) as api:
        return await set_cordoned(api, options.node, False, apply=context.apply)


async def set_cordoned(
    api: Api, node: str, wanted: bool, *, apply: bool, reason: str = ""
) -> Cordoning:
    """Writes nothing if the node already is in the wanted state.

    `reason` is written on the node together with the cordon, and removed with it.
    """
    current: Node = await get_named(api, _NODES, node, Node)
    before = current.spec.unschedulable
    reason_before = current.metadata.annotations.get(CORDONED_FOR, "") if before else ""
    if apply and before != wanted:
        # An absent field means schedulable, and null removes it.
        patch: dict[str, Any] = {"spec": {"unschedulable": True if wanted else None}}
        if reason or CORDONED_FOR in current.metadata.annotations:
            patch["metadata"] = {"annotations": {CORDONED_FOR: reason or None}}
        await api.patch(_NODES, node, patch)
    return Cordoning(node, before, wanted, apply, reason_before)


def cordoning_blocks(done: Cordoning) -> Sequence[Block]:
    verb = "cordon" if done.after else "uncordon"
    if done.before == done.after:
        return [text(f"node {done.node} is already {verb}ed")]
    if done.applied:
        return [text(f"node {done.node} is {verb}ed", Tone.GOOD)]
    return [text(f"would {verb} node {done.node}")]
