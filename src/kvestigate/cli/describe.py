"""`kvestigate describe`."""

from __future__ import annotations

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.parameters import kind_and_name
from kvestigate.cli.run import Run


@operation_command(
    "describe",
    examples=(
        "kvestigate describe pod web-0 -n shop",
        "kvestigate describe node node-04",
        "kvestigate describe ingress front -n shop -o yaml",
    ),
)
@click.argument("kind")
@click.argument("name", required=False)
async def describe(run: Run, kind: str, name: str | None) -> None:
    """Show one object in detail, with its events.

    KIND is any type of the cluster: pod, svc, deploy, node, widgets.example.org. KIND/NAME works,
    too. The values of Secrets are not shown.
    """
    from kvestigate.inspection.describe import DescribeOptions

    await run(DescribeOptions(*kind_and_name(kind, name)))
