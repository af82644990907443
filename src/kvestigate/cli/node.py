"""`kvestigate node`: whether a node takes new pods."""

from __future__ import annotations

from dataclasses import replace

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit


@group("node")
def node() -> None:
    """Open and close nodes for new pods."""


@command(
    "cordon",
    into=node,
    examples=("kvestigate node cordon gpu-node-7 --i-understand-this-modifies-cluster",),
)
@click.argument("name", metavar="NODE")
@writes(Consequence.MODIFIES_CLUSTER)
async def cordon(options: GlobalOptions, name: str, confirmation: Confirmation) -> None:
    """Keep new pods off NODE; those on it stay.

    It can be taken back with `uncordon`, so --apply may be left out.
    """
    await _toggle(options, name, True, confirmation)


@command(
    "uncordon",
    into=node,
    examples=("kvestigate node uncordon gpu-node-7 --i-understand-this-modifies-cluster",),
)
@click.argument("name", metavar="NODE")
@writes(Consequence.MODIFIES_CLUSTER)
async def uncordon(options: GlobalOptions, name: str, confirmation: Confirmation) -> None:
    """Let new pods come to NODE again.

    It can be taken back with `cordon`, so --apply may be left out.
    """
    await _toggle(options, name, False, confirmation)


async def _toggle(
    options: GlobalOptions, name: str, wanted: bool, confirmation: Confirmation
) -> None:
    from kvestigate.nodeops.cordon import CordonOptions, cordoning_blocks
    from kvestigate.nodeops.cordon import cordon as close
    from kvestigate.nodeops.cordon import uncordon as open_again

    act = close if wanted else open_again
    access = access_of(options)
    result = await act(access, CordonOptions(name, apply=confirmation.understood))
    emit(options, result, cordoning_blocks)
    replace(confirmation, apply=True).require()
