"""`kvestigate volumes`: storage that outlives tasks."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.jobs import all_users_option
from kvestigate.cli.launching import API_URL, in_process, launcher_of
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit, emit_message
from kvestigate.errors import KvestigateError, UsageError


@group("volumes")
def volumes() -> None:
    """Create volumes for tasks and look after them."""


@command(
    "create",
    into=volumes,
    examples=(
        "kvestigate volumes create data-vol 10Gi",
        "kvestigate volumes create shared 1Ti --access-modes ReadWriteMany",
    ),
)
@click.argument("name")
@click.argument("size")
@click.option(
    "--storage-class", metavar="NAME", help="Class to use; the cluster's default if not given."
)
@click.option(
    "--access-modes",
    metavar="MODES",
    default="ReadWriteOnce",
    show_default=True,
    help="Separated by commas: ReadWriteOnce, ReadWriteMany, ReadOnlyMany.",
)
async def create(
    options: GlobalOptions, name: str, size: str, storage_class: str | None, access_modes: str
) -> None:
    """Create a volume NAME of SIZE (10Gi, 1Ti)."""
    from kvestigate.jobs.interface import VolumeRequest

    modes = tuple(mode.strip() for mode in access_modes.split(",") if mode.strip())
    async with launcher_of(options) as launcher:
        made = await launcher.create_volume(VolumeRequest(name, size, storage_class, modes))
    emit_message(options, made)


@command(
    "list",
    into=volumes,
    examples=("kvestigate volumes list", "kvestigate volumes list --details --all-users"),
)
@click.option("--details", is_flag=True, help="Also show user, class, access modes and claim.")
@all_users_option
async def list_(options: GlobalOptions, details: bool, all_users: bool) -> None:
    """List volumes, newest first."""
    from kvestigate.jobs.rendering import volume_list_blocks

    async with launcher_of(options) as launcher:
        listed = await launcher.list_volumes(all_users=all_users)
    emit(options, listed, partial(volume_list_blocks, details=details, all_users=all_users))


@command("status", into=volumes, examples=("kvestigate volumes status vol12345",))
@click.argument("volume_id")
async def status(options: GlobalOptions, volume_id: str) -> None:
    """Show one volume."""
    from kvestigate.jobs.rendering import volume_blocks

    async with launcher_of(options) as launcher:
        emit(options, await launcher.volume(volume_id), volume_blocks)


@command("resize", into=volumes, examples=("kvestigate volumes resize data-vol 20Gi",))
@click.argument("volume_id")
@click.argument("size")
async def resize(options: GlobalOptions, volume_id: str, size: str) -> None:
    """Make a volume larger, if its storage class allows it."""
    async with launcher_of(options) as launcher:
        emit_message(options, await launcher.resize_volume(volume_id, size))


@command(
    "ls",
    into=volumes,
    examples=("kvestigate volumes ls data-vol", "kvestigate volumes ls data-vol /checkpoints"),
)
@click.argument("volume_id")
@click.argument("path", default="/")
async def ls(options: GlobalOptions, volume_id: str, path: str) -> None:
    """List the files on a volume."""
    from kvestigate.jobs.rendering import volume_files_blocks

    async with launcher_of(options) as launcher:
        emit(options, await launcher.volume_files(volume_id, path), volume_files_blocks)


@command(
    "cp",
    into=volumes,
    examples=(
        "kvestigate volumes cp ./dataset data-vol:/",
        "kvestigate volumes cp data-vol:/checkpoints/last.pt .",
    ),
)
@click.argument("source")
@click.argument("target")
async def cp(options: GlobalOptions, source: str, target: str) -> None:
    """Copy files to a volume or from one, which is written VOLUME:PATH."""
    if os.environ.get(API_URL):
        raise UsageError(
            f"volumes cp works without a server, but {API_URL} is set", hint=f"unset {API_URL}"
        )
    there, here = _on_volume(target), _on_volume(source)
    if (there is None) is (here is None):
        raise UsageError(
            "one path must be on a volume and the other on this machine",
            hint="volumes cp ./data VOLUME:/ or volumes cp VOLUME:/data .",
        )
    async with in_process(options) as launcher:
        if there is not None:
            await launcher.copy_to_volume(Path(source), *there)
        elif here is not None:
            await launcher.copy_from_volume(*here, Path(target))


def _on_volume(text: str) -> tuple[str, str] | None:
    """`data-vol:/path` as volume and path; None for a local path, such as `./a:b`."""
    volume, colon, path = text.partition(":")
    return (volume, path or "/") if colon and volume and "/" not in volume else None


@command(
    "delete",
    into=volumes,
    examples=(
        "kvestigate volumes delete vol12345",
        "kvestigate volumes delete vol12345 --force",
    ),
)
@click.argument("volume_id")
@click.option("--force", is_flag=True, help="Do not ask.")
async def delete(options: GlobalOptions, volume_id: str, force: bool) -> None:
    """Delete a volume and all data on it."""
    async with launcher_of(options) as launcher:
        volume = await launcher.volume(volume_id)
        if not force and not _confirmed(f"delete volume {volume.name} ({volume.size})?"):
            raise KvestigateError(
                f"volume {volume.name} was not deleted: the question was not answered with yes",
                hint="--force deletes without asking",
            )
        emit_message(options, await launcher.delete_volume(volume_id))


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:  # there was nobody to ask
        click.echo(err=True)
        return False
