"""`kvestigate workspace sync` and `fetch`: files into a workspace, and out of it."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path
from typing import IO

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import ticking
from kvestigate.cli.workspace import described, meant, workspace
from kvestigate.errors import KvestigateError, UsageError
from kvestigate.node_access.model import NodeAccess
from kvestigate.workspace.spec import WorkspaceSpec

_IN_MEMORY = 16 << 20


@command(
    "sync",
    into=workspace,
    examples=(
        "kvestigate workspace sync ./code --config workspace.yaml --exclude .git",
        "kvestigate workspace sync ./inputs --config workspace.yaml --subdir datasets/inputs "
        "--apply --i-understand-this-modifies-hosts",
    ),
)
@click.argument("local")
@click.option(
    "--subdir", default="code", show_default=True, metavar="DIR", help="Where in the workspace."
)
@click.option("--delete", is_flag=True, help="Remove there what is not in LOCAL.")
@click.option(
    "--exclude",
    "excludes",
    multiple=True,
    metavar="PATTERN",
    help="Neither send nor remove what matches, such as '*.pyc'; repeatable.",
)
@described
@writes(Consequence.MODIFIES_HOSTS)
async def sync(
    options: GlobalOptions,
    local: str,
    subdir: str,
    delete: bool,
    excludes: tuple[str, ...],
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
    confirmation: Confirmation,
) -> None:
    """Bring a local file or directory into a workspace.

    Of a directory LOCAL its content is sent, and only files whose size or time differ from
    those on the host. Links are sent as links.
    """
    from kvestigate.workspace.archives import Directory
    from kvestigate.workspace.names import check_subdir
    from kvestigate.workspace.rendering import synced_blocks
    from kvestigate.workspace.sync import Wanted, bring

    files = Directory(Path(local), excludes)
    wanted = Wanted(spec, check_subdir(subdir, "--subdir"), files, delete, excludes)
    with ticking(f"comparing {local}" if not meant(confirmation) else f"sending {local}"):
        done = await bring(access_of(options), wanted, apply=meant(confirmation), via=via)
    emit(options, done, synced_blocks)
    if done.sent or done.removed:
        confirmation.require()


@command(
    "fetch",
    into=workspace,
    examples=("kvestigate workspace fetch checkpoints/last.pt ./out --config workspace.yaml",),
)
@click.argument("path")
@click.argument("directory", default=".")
@described
async def fetch(
    options: GlobalOptions,
    path: str,
    directory: str,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
) -> None:
    """Copy a file or directory of a workspace to this machine.

    PATH is relative to the workspace.
    """
    from kvestigate.workspace.fetch import stream
    from kvestigate.workspace.options import FetchOptions

    wanted = FetchOptions(spec, path)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        with ticking(f"fetching {path}"):
            async for piece in stream(access_of(options), wanted, via):
                file.write(piece)
        file.seek(0)
        name = _unpack(file, path, directory)
    click.echo(f"fetched {Path(directory) / name}", err=True)


def _unpack(file: IO[bytes], path: str, directory: str) -> str:
    """The name of what was fetched."""
    from kvestigate_client.extraction import extract

    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=file) as tar:
            names = tar.getnames()
            extract(tar, directory)
    except tarfile.TarError as error:
        raise KvestigateError(f"{path}: {error}") from None
    except OSError as error:
        raise UsageError(f"{directory} cannot be written: {error.strerror}") from None
    return names[0]
