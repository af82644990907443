"""`kvestigate workspace sync` and `fetch`: files into a workspace, and out of it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.output import warn_of_skipped
from kvestigate.cli.progress import ticking
from kvestigate.cli.run import Run
from kvestigate.cli.workspace import described, workspace
from kvestigate.errors import KvestigateError, UsageError
from kvestigate.node_access.model import NodeAccess
from kvestigate.render.blocks import printable

if TYPE_CHECKING:
    from kvestigate.workspace.spec import WorkspaceSpec
    from kvestigate_client.extraction import Unpacked

_IN_MEMORY = 16 << 20


@operation_command(
    "workspace.sync",
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
async def sync(
    run: Run,
    local: str,
    subdir: str,
    delete: bool,
    excludes: tuple[str, ...],
    spec: WorkspaceSpec,
    via: NodeAccess,
) -> None:
    """Bring files into a workspace.

    LOCAL is a file or directory. Of a directory its content is sent, and only files whose size
    or time differ from those on the host. Links are sent as links.
    """
    from kvestigate.workspace.names import check_subdir
    from kvestigate.workspace.options import LocalSyncOptions

    options = LocalSyncOptions(
        spec,
        subdir=check_subdir(subdir, "--subdir"),
        delete=delete,
        excludes=excludes,
        local=local,
    )
    await run(options, via=via, doing=f"sending {local}", planning=f"comparing {local}")


@operation_command(
    "workspace.fetch",
    into=workspace,
    examples=("kvestigate workspace fetch checkpoints/last.pt ./out --config workspace.yaml",),
)
@click.argument("path")
@click.argument("directory", default=".")
@described
async def fetch(
    run: Run,
    path: str,
    directory: str,
    spec: WorkspaceSpec,
    via: NodeAccess,
) -> None:
    """Copy a file or directory out of a workspace.

    PATH is relative to the workspace.
    """
    from kvestigate.workspace.fetch import stream
    from kvestigate.workspace.options import FetchOptions

    options = FetchOptions(spec, path)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        with ticking(f"fetching {path}"):
            async for piece in stream(run.context(via), options):
                file.write(piece)
        file.seek(0)
        unpacked = _unpack(file, path, directory)
    warn_of_skipped(unpacked.skipped)
    for name in unpacked.names:
        click.echo(f"fetched {printable(str(Path(directory) / name))}", err=True)


def _unpack(file: IO[bytes], path: str, directory: str) -> Unpacked:
    from kvestigate_client.extraction import extract
    from kvestigate_client.members import ArchiveRefused

    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
        return extract(file, directory)
    except ArchiveRefused as error:
        raise KvestigateError(f"{path}: the archive {error}") from None
    except OSError as error:
        raise UsageError(f"{directory} cannot be written: {error.strerror}") from None
