"""`kvestigate delete`."""

from __future__ import annotations

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.parameters import duration, kind_and_name, whole_number
from kvestigate.cli.run import Run


@operation_command(
    "delete",
    examples=(
        "kvestigate delete deployment my-app -n web",
        "kvestigate delete pod stuck -n web --apply --i-understand-this-modifies-cluster",
        "kvestigate delete widgets.example.org blue --cascade orphan",
    ),
)
@click.argument("kind")
@click.argument("name", required=False)
@click.option(
    "--cascade",
    type=click.Choice(["background", "foreground", "orphan"]),
    default="background",
    show_default=True,
    help="Owned objects are deleted after the object, before it, or kept.",
)
@click.option(
    "--grace-period",
    type=whole_number(0, 86_400),
    metavar="SECONDS",
    help="Grace period, instead of the object's own.",
)
@click.option(
    "--timeout",
    type=duration,
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait until the object is deleted.",
)
async def delete(
    run: Run,
    kind: str,
    name: str | None,
    cascade: str,
    grace_period: int | None,
    timeout: float,
) -> int:
    """Delete one object, and show the objects that are deleted with it.

    KIND is any type that the server has: pod, deploy, widgets.example.org; KIND/NAME is
    understood, too. Exits with 7 if it is not gone in time; the finalizers that it waits for are
    named.
    """
    from kvestigate.client.api import Propagation
    from kvestigate.manifests.delete import DeleteOptions

    kind, name = kind_and_name(kind, name)
    wanted = DeleteOptions(
        kind=kind,
        name=name,
        propagation=Propagation(cascade.capitalize()),
        grace_seconds=grace_period,
        timeout=timeout,
    )
    return run.operation.exit_code(await run(wanted))
