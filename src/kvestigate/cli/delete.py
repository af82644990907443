"""`kvestigate delete`."""

from __future__ import annotations

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import duration, kind_and_name, whole_number
from kvestigate.cli.progress import counting
from kvestigate.errors import EXIT_OK, EXIT_TIMEOUT


@command(
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
@writes(Consequence.MODIFIES_CLUSTER)
async def delete(
    options: GlobalOptions,
    kind: str,
    name: str | None,
    cascade: str,
    grace_period: int | None,
    timeout: float,
    confirmation: Confirmation,
) -> int:
    """Delete one object, and show the objects that are deleted with it.

    KIND is any type that the server has: pod, deploy, widgets.example.org; KIND/NAME is
    understood, too. Exits with 7 if it is not gone in time; the finalizers that it waits for are
    named.
    """
    from kvestigate.client.api import Propagation
    from kvestigate.manifests.delete import LEAVING, DeleteOptions
    from kvestigate.manifests.delete import delete as collect
    from kvestigate.manifests.rendering import deletion_blocks

    kind, name = kind_and_name(kind, name)
    wanted = DeleteOptions(
        kind=kind,
        name=name,
        propagation=Propagation(cascade.capitalize()),
        grace_seconds=grace_period,
        timeout=timeout,
        apply=confirmation.apply and confirmation.understood,
    )
    with counting() as progress:
        result = await collect(access_of(options), wanted, progress)
    emit(options, result, deletion_blocks)
    confirmation.require()
    return EXIT_TIMEOUT if result.outcome == LEAVING else EXIT_OK
