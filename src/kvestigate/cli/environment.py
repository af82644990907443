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
@click.option("--include-empty", is_flag=True, help="Also list resources without objects.")
@data_option
async def snapshot(
    options: GlobalOptions,
    id: str,
    resources: tuple[str, ...],
    include_empty: bool,
    data: Path | None,
) -> None:
    """Show all objects of the plane ID at one revision.

    The table counts objects; -o json has the objects. Values of Secrets are hidden.
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
@click.option(
    "--name",
    default="",
    help="Id of the fork; with --count NAME-0000 and so on.",
)
@click.option("--count", type=whole_number(1, 10_000), help="Number of forks.")
@click.option("--checkpoint", default="", help="Fork from this checkpoint, not from the present.")
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
    """Copy the plane ID. Later changes of the plane and of its copies are independent."""
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
    "--name", default="", help="Name of the checkpoint; derived from the revision if not given."
)
@click.option("--replace", is_flag=True, help="Overwrite an existing checkpoint of that name.")
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
    """Save the current state of the plane ID as a checkpoint."""
    from kvestigate.planes.environment import CheckpointOptions
    from kvestigate.planes.environment import checkpoint as keep
    from kvestigate.planes.rendering import checkpoint_blocks

    access = server_access(options, data)
    click.echo(f"checkpoint plane {id} at {access.server}", err=True)
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
@click.option("--checkpoint", default="", help="Checkpoint to restore.")
@click.option("--revision", default="", help="Revision to restore, if the plane still retains it.")
@click.option(
    "--seed",
    metavar="N",
    type=SEED,
    help="New seed of random choices in virtual time; by default the seed is restored too.",
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
    """Restore the plane ID to an earlier state.

    Objects that changed since then are changed back; objects that were created are deleted.
    """
    from kvestigate.planes.environment import RestoreOptions
    from kvestigate.planes.environment import restore as put_back
    from kvestigate.planes.rendering import restored_blocks

    if bool(checkpoint) == bool(revision):
        raise UsageError(
            "give either --checkpoint or --revision",
            hint=f"`kvestigate plane events {id}` lists revisions",
        )
    access = server_access(options, data)
    click.echo(f"restore plane {id} at {access.server} to {checkpoint or revision}", err=True)
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

    FROM and TO are a revision (1042), checkpoint:NAME or plane:ID. Without TO, FROM is
    compared with the current state.
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
@click.option("--since", default="", help="Only changes after this revision.")
@resource_option
@click.option("--objects", is_flag=True, help="With -o json, include the object after each change.")
@data_option
async def events(
    options: GlobalOptions,
    id: str,
    since: str,
    resources: tuple[str, ...],
    objects: bool,
    data: Path | None,
) -> None:
    """Show every change of the plane ID, with the user who made it."""
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
    help="Virtual time to pass; without it, until no controller has work left.",
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
    """Let virtual time pass in the plane ID, which must have a virtual clock."""
    from kvestigate.planes.environment import StepOptions
    from kvestigate.planes.environment import step as move
    from kvestigate.planes.rendering import stepped_blocks

    access = server_access(options, data)
    length = "until no controller has work left" if seconds is None else f"for {seconds:g} s"
    click.echo(f"step plane {id} at {access.server} {length}", err=True)
    confirmation.require()
    emit(options, await move(access, StepOptions(id, seconds)), stepped_blocks)
