"""`kvestigate scale`."""

from __future__ import annotations

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import whole_number


@command(
    "scale",
    examples=(
        "kvestigate scale my-app 5 -n my-ns",
        "kvestigate scale my-app 0 -n my-ns --apply --i-understand-this-modifies-cluster",
        "kvestigate scale statefulset/db 3 -n my-ns",
    ),
)
@click.argument("name", metavar="DEPLOYMENT")
@click.argument("replicas", type=whole_number(0, 1_000_000))
@writes(Consequence.MODIFIES_CLUSTER)
async def scale(
    options: GlobalOptions, name: str, replicas: int, confirmation: Confirmation
) -> None:
    """Set the number of replicas of a Deployment; 0 stops it without deleting it.

    For a StatefulSet or ReplicaSet, give the kind: statefulset/NAME.
    """
    from kvestigate.nodeops.scale import ScaleOptions, scaling_blocks
    from kvestigate.nodeops.scale import scale as collect

    confirmed = confirmation.apply and confirmation.understood
    result = await collect(access_of(options), ScaleOptions(name, replicas, apply=confirmed))
    emit(options, result, scaling_blocks)
    if result.before != result.after:
        confirmation.require()
