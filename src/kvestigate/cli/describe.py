"""`kvestigate describe`."""

from __future__ import annotations

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import kind_and_name
from kvestigate.cli.progress import counting


@command(
    "describe",
    examples=(
        "kvestigate describe pod web-0 -n shop",
        "kvestigate describe node node-04",
        "kvestigate describe ingress front -n shop -o yaml",
    ),
)
@click.argument("kind")
@click.argument("name", required=False)
async def describe(options: GlobalOptions, kind: str, name: str | None) -> None:
    """Show one object in detail, with its events.

    KIND is any type of the cluster: pod, svc, deploy, node, widgets.example.org. KIND/NAME works,
    too. The values of Secrets are not shown.
    """
    from kvestigate.inspection.describe import DescribeOptions, collect
    from kvestigate.inspection.description import blocks

    wanted = DescribeOptions(*kind_and_name(kind, name))
    with counting() as progress:
        result = await collect(access_of(options), wanted, progress)
    emit(options, result, blocks)
