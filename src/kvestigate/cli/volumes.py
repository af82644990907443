"""`kvestigate volumes delete`, which asks before it deletes; the other commands are derived."""

from __future__ import annotations

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.group import group
from kvestigate.cli.run import Run
from kvestigate.errors import KvestigateError


@group("volumes")
def volumes() -> None:
    """Create volumes for tasks and look after them."""


@operation_command(
    "volumes.delete",
    into=volumes,
    examples=(
        "kvestigate volumes delete vol12345",
        "kvestigate volumes delete vol12345 --force",
    ),
)
@click.argument("volume_id")
@click.option("--force", is_flag=True, help="Do not ask.")
async def delete(run: Run, volume_id: str, force: bool) -> None:
    """Delete a volume and all data on it."""
    from kvestigate.jobs.interface import OneVolume
    from kvestigate.jobs.launching import launcher_of

    async with launcher_of(run.context().resolve) as launcher:
        volume = await launcher.volume(volume_id)
    if not force and not _confirmed(f"delete volume {volume.name} ({volume.size})?"):
        raise KvestigateError(
            f"volume {volume.name} was not deleted: the question was not answered with yes",
            hint="--force deletes without asking",
        )
    await run(OneVolume(volume_id))


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:  # there was nobody to ask
        click.echo(err=True)
        return False
