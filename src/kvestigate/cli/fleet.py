"""`kvestigate fleet`: many planes, declared as one object."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.files import read_whole
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import whole_number
from kvestigate.cli.plane import clock_options, data_option, server_access
from kvestigate.cli.progress import counting
from kvestigate.errors import InputError
from kvestigate.render.human import counted


@group("fleet")
def fleet() -> None:
    """Create and manage many identical planes as one object."""


@command(
    "create",
    into=fleet,
    examples=(
        "kvestigate fleet create crew --replicas 1000 --apply --i-understand-this-modifies-cluster",
        "kvestigate fleet create crew --replicas 8 --from-plane alpha --ttl 3600 --apply "
        "--i-understand-this-modifies-cluster",
    ),
)
@click.argument("name")
@click.option(
    "--replicas",
    type=whole_number(0, 10_000),
    default=1,
    show_default=True,
    help="Number of members.",
)
@click.option("--prefix", default="", help="Prefix of the ids of members; NAME- if not given.")
@click.option(
    "--ttl",
    metavar="SECONDS",
    type=whole_number(1, 10**9),
    help="Delete the fleet and its members after this time.",
)
@click.option("--from-plane", default="", metavar="ID", help="Members are copies of this plane.")
@click.option("--scenario", default="", help="Members start with the objects of this scenario.")
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Members start with the objects of this manifest file. May be repeated.",
)
@clock_options
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def create(
    options: GlobalOptions,
    name: str,
    replicas: int,
    prefix: str,
    ttl: int | None,
    from_plane: str,
    scenario: str,
    files: tuple[Path, ...],
    clock: Literal["wall", "virtual"],
    seed: int,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Create the fleet NAME."""
    from kvestigate.planes.fleets import NewFleet, settled
    from kvestigate.planes.fleets import create as declare
    from kvestigate.planes.rendering import made_fleet_blocks

    objects = tuple(obj for path in files for obj in _manifests(path))
    access = server_access(options, data)
    click.echo(f"create fleet {name} of {counted(replicas, 'plane')} at {access.server}", err=True)
    confirmation.require()
    new = NewFleet(name, replicas, prefix, ttl, from_plane, scenario, objects, clock, seed)
    with counting("making") as progress:
        made = await settled(access, await declare(access, new), progress)
    emit(options, made, made_fleet_blocks)


def _manifests(path: Path) -> list[dict[str, Any]]:
    from kvestigate.kube.yaml_documents import load

    documents = [document.value for document in load(read_whole(path), source=str(path))]
    for value in documents:
        if not isinstance(value, dict):
            raise InputError("is not a manifest with apiVersion and kind", where=str(path))
    return documents


@command(
    "scale",
    into=fleet,
    examples=(
        "kvestigate fleet scale crew --replicas 20 --apply --i-understand-this-modifies-cluster",
    ),
)
@click.argument("name")
@click.option("--replicas", type=whole_number(0, 10_000), required=True, help="Number of members.")
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def scale(
    options: GlobalOptions,
    name: str,
    replicas: int,
    data: Path | None,
    confirmation: Confirmation,
) -> None:
    """Set the number of members of the fleet NAME.

    Surplus members are deleted with all their objects.
    """
    from kvestigate.planes.fleets import ScaleOptions, settled
    from kvestigate.planes.fleets import scale as change
    from kvestigate.planes.rendering import made_fleet_blocks

    access = server_access(options, data)
    click.echo(f"scale fleet {name} at {access.server} to {counted(replicas, 'plane')}", err=True)
    confirmation.require()
    with counting("making") as progress:
        declared = await change(access, ScaleOptions(name, replicas))
        made = await settled(access, declared, progress)
    emit(options, made, made_fleet_blocks)


@command(
    "status",
    into=fleet,
    examples=("kvestigate fleet status crew", "kvestigate fleet status crew -o json"),
)
@click.argument("name")
@data_option
async def status(options: GlobalOptions, name: str, data: Path | None) -> None:
    """Show the members of the fleet NAME and their phases."""
    from kvestigate.planes.fleets import FleetOptions
    from kvestigate.planes.fleets import status as read
    from kvestigate.planes.rendering import fleet_blocks

    emit(options, await read(server_access(options, data), FleetOptions(name)), fleet_blocks)


@command(
    "delete",
    into=fleet,
    examples=("kvestigate fleet delete crew --apply --i-understand-this-modifies-cluster",),
)
@click.argument("name")
@data_option
@writes(Consequence.MODIFIES_CLUSTER)
async def delete(
    options: GlobalOptions, name: str, data: Path | None, confirmation: Confirmation
) -> None:
    """Delete the fleet NAME with all its members."""
    from kvestigate.planes.fleets import FleetOptions
    from kvestigate.planes.fleets import delete as remove

    access = server_access(options, data)
    click.echo(f"delete fleet {name} at {access.server} with all its members", err=True)
    confirmation.require()
    with counting("deleting"):
        done = await remove(access, FleetOptions(name))
    click.echo(f"fleet {name} is {'deleted' if done.gone else 'being deleted'}")
