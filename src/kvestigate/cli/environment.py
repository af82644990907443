"""`kvestigate plane snapshot|fork|checkpoint|restore|diff|events|step`: a plane as a whole."""

from __future__ import annotations

from pathlib import Path

import click

from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import SEED, duration, whole_number
from kvestigate.cli.plane import data_option, plane, server_access
from kvestigate.errors import UsageError

__all__ = ["plane"]

resource_option = click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="PLURAL",
    help="Only this resource: pods, deployments.apps. May be repeated.",
)


@command(
    "snapshot",
    into=plane,
    examples=(
        "kvestigate plane snapshot alpha",
        "kvestigate plane snapshot alpha --resource pods -o json",
    ),
)
@click.argument("id")
@resource_option
@click.option("--include-empty", is_flag=True, help="Also name resources without objects.")
@data_option
async def snapshot(
    options: GlobalOptions,
    id: str,
    resources: tuple[str, ...],
    include_empty: bool,
    data: Path | None,
) -> None:
    """Show everything in the plane ID at one revision.

    With -o json all objects are in it. Values of Secrets are hidden.
    """
    from kvestigate.planes.environment import SnapshotOptions
    from kvestigate.planes.environment import snapshot as take
    from kvestigate.planes.rendering import snapshot_blocks

    chosen = SnapshotOptions(id, resources, include_empty)
    emit(options, await take(server_access(options, data), chosen), snapshot_blocks)


@command(
    "fork",
    into=plane,
    examples=(
        "kvestigate plane fork alpha --name beta --apply --i-understand-this-modifies-cluster",
        "kvestigate plane fork alpha --count 8 --apply --i-understand-this-modifies-cluster",
    ),
)
@click.argument("id")
@click.option("--name", default="", help="Name of the fork; with --count NAME-0000 and so on.")
@click.option("--count", type=whole_number(1, 10_000), help="How many forks.")
@click.option("--checkpoint", default="", help="Fork from this state instead of the present.")
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def fork(
    options: GlobalOptions,
    id: str,
    name: str,
    count: int | None,
    checkpoint: str,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Make copies of the plane ID that are independent from then on."""
    from kvestigate.planes.environment import ForkOptions
    from kvestigate.planes.environment import fork as make
    from kvestigate.planes.rendering import forks_blocks

    access = server_access(options, data)
    click.echo(
        f"fork plane {id} at {access.server} {'once' if (count or 1) == 1 else f'{count} times'}",
        err=True,
    )
    confirmation.require()
    made = await make(access, ForkOptions(id, name, count, checkpoint))
    emit(options, made, forks_blocks)


@command(
    "checkpoint",
    into=plane,
    examples=(
        "kvestigate plane checkpoint alpha --name start --apply "
        "--i-understand-this-modifies-cluster",
    ),
)
@click.argument("id")
@click.option(
    "--name", default="", help="Name of the checkpoint; made from the revision if not given."
)
@click.option("--replace", is_flag=True, help="Move a checkpoint of that name.")
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def checkpoint(
    options: GlobalOptions,
    id: str,
    name: str,
    replace: bool,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Keep the present state of the plane ID under a name."""
    from kvestigate.planes.environment import CheckpointOptions
    from kvestigate.planes.environment import checkpoint as keep
    from kvestigate.planes.rendering import checkpoint_blocks

    access = server_access(options, data)
    click.echo(f"keep the state of plane {id} at {access.server}", err=True)
    confirmation.require()
    kept = await keep(access, CheckpointOptions(id, name, replace))
    emit(options, kept, checkpoint_blocks)


@command(
    "restore",
    into=plane,
    examples=(
        "kvestigate plane restore alpha --checkpoint start --apply "
        "--i-understand-this-modifies-cluster",
        "kvestigate plane restore alpha --revision 1042 --apply "
        "--i-understand-this-modifies-cluster",
        "kvestigate plane restore alpha --checkpoint start --seed 8 --apply "
        "--i-understand-this-modifies-cluster",
    ),
)
@click.argument("id")
@click.option("--checkpoint", default="", help="The state to go back to.")
@click.option("--revision", default="", help="The revision to go back to, if it is retained.")
@click.option(
    "--seed",
    metavar="N",
    type=SEED,
    help="Seed of all that looks random in virtual time from then on; as it was by default.",
)
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def restore(
    options: GlobalOptions,
    id: str,
    checkpoint: str,
    revision: str,
    seed: int | None,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Put the plane ID back to where it was.

    What was changed since is changed back; what came since goes.
    """
    from kvestigate.planes.environment import RestoreOptions
    from kvestigate.planes.environment import restore as put_back
    from kvestigate.planes.rendering import restored_blocks

    if bool(checkpoint) == bool(revision):
        raise UsageError(
            "one of --checkpoint and --revision has to be given",
            hint="`kvestigate plane events` shows revisions",
        )
    access = server_access(options, data)
    click.echo(f"put plane {id} at {access.server} back to {checkpoint or revision}", err=True)
    confirmation.require()
    done = await put_back(access, RestoreOptions(id, checkpoint, revision, seed))
    emit(options, done, restored_blocks)


@command(
    "diff",
    into=plane,
    examples=(
        "kvestigate plane diff alpha checkpoint:start",
        "kvestigate plane diff alpha plane:alpha plane:beta -o json",
    ),
)
@click.argument("id")
@click.argument("before", metavar="FROM")
@click.argument("after", metavar="[TO]", default="")
@resource_option
@data_option
async def diff(
    options: GlobalOptions,
    id: str,
    before: str,
    after: str,
    resources: tuple[str, ...],
    data: Path | None,
) -> None:
    """Show what differs between two states of the plane ID.

    FROM and TO are revisions (1042), checkpoint:NAME or plane:OTHER; without TO the present.
    Values of Secrets are hidden.
    """
    from kvestigate.planes.environment import DiffOptions
    from kvestigate.planes.environment import diff as compare
    from kvestigate.planes.rendering import difference_blocks

    chosen = DiffOptions(id, before, after, resources)
    emit(options, await compare(server_access(options, data), chosen), difference_blocks)


@command(
    "events",
    into=plane,
    examples=(
        "kvestigate plane events alpha",
        "kvestigate plane events alpha --since 1042 --resource pods",
    ),
)
@click.argument("id")
@click.option("--since", default="", help="Only what came after this revision.")
@resource_option
@click.option("--objects", is_flag=True, help="With -o json, the objects after each change.")
@data_option
async def events(
    options: GlobalOptions,
    id: str,
    since: str,
    resources: tuple[str, ...],
    objects: bool,
    data: Path | None,
) -> None:
    """Show every change of the plane ID, with its actor."""
    from kvestigate.planes.environment import EventsOptions
    from kvestigate.planes.environment import events as read
    from kvestigate.planes.rendering import events_blocks

    chosen = EventsOptions(id, since, resources, objects)
    emit(options, await read(server_access(options, data), chosen), events_blocks)


@command(
    "step",
    into=plane,
    examples=(
        "kvestigate plane step alpha --seconds 60 --apply --i-understand-this-modifies-cluster",
        "kvestigate plane step alpha --apply --i-understand-this-modifies-cluster",
    ),
)
@click.argument("id")
@click.option(
    "--seconds",
    type=duration,
    help="How long; until nothing is left to do if not given.",
)
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def step(
    options: GlobalOptions,
    id: str,
    seconds: float | None,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Let time pass in the plane ID, if it has a virtual clock."""
    from kvestigate.planes.environment import StepOptions
    from kvestigate.planes.environment import step as move
    from kvestigate.planes.rendering import stepped_blocks

    access = server_access(options, data)
    length = "until nothing is left to do" if seconds is None else f"for {seconds:g} s"
    click.echo(f"step plane {id} at {access.server} {length}", err=True)
    confirmation.require()
    emit(options, await move(access, StepOptions(id, seconds)), stepped_blocks)
