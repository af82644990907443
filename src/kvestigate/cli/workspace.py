"""`kvestigate workspace`: directories on hosts, made, compared and removed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.files import write_whole
from kvestigate.cli.group import group
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.run import Run
from kvestigate.errors import InputError
from kvestigate.node_access.model import NodeAccess
from kvestigate.workspace.names import DEFAULT_ROOT

if TYPE_CHECKING:
    from kvestigate.workspace.spec import WorkspaceSpec

_MEANT = "--apply --i-understand-this-modifies-hosts"


@group("workspace")
def workspace() -> None:
    """Run things on the nodes' own operating system, without containers."""


def described(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and how hosts are reached; the command is given `spec` and `via`."""

    @click.option(
        "--config", required=True, metavar="FILE", help="The workspace.yaml that describes it."
    )
    @through_daemon_set
    @functools.wraps(function)
    def call(*args: Any, config: str, **kwargs: Any) -> Any:
        from kvestigate.workspace.spec import load_workspace

        return function(*args, spec=load_workspace(config), **kwargs)

    return call


@operation_command(
    "workspace.diff",
    into=workspace,
    examples=("kvestigate workspace diff --config workspace.yaml",),
)
@described
async def diff(run: Run, spec: WorkspaceSpec, via: NodeAccess) -> None:
    """Show how a workspace differs from its description, and what `apply` would do."""
    from kvestigate.workspace.options import DiffOptions

    await run(DiffOptions(spec), via=via, doing=f"comparing workspace {spec.name}")


@operation_command(
    "workspace.apply",
    into=workspace,
    examples=(
        "kvestigate workspace apply --config workspace.yaml",
        f"kvestigate workspace apply --config workspace.yaml {_MEANT}",
    ),
)
@described
async def apply(run: Run, spec: WorkspaceSpec, via: NodeAccess) -> None:
    """Make the workspace that a file describes, and bring all its sources into it.

    Sources are relative to the file. Only what changed is sent; nothing is removed.
    """
    from kvestigate.workspace.options import ApplyOptions

    await run(
        ApplyOptions(spec),
        via=via,
        doing=f"applying workspace {spec.name}",
        planning=f"planning workspace {spec.name}",
    )


@operation_command(
    "workspace.export",
    into=workspace,
    examples=("kvestigate workspace export finetune --node node-02 -o finetune.yaml",),
)
@click.argument("name")
@click.option("--node", required=True, metavar="NODE", help="Node that it is on.")
@click.option(
    "--root",
    default=DEFAULT_ROOT,
    show_default=True,
    metavar="DIR",
    help="Where it is on the node.",
)
@click.option("-o", "--output", "file", default="-", metavar="FILE", help="Where to write it.")
@through_daemon_set
async def export(run: Run, name: str, node: str, root: str, file: str, via: NodeAccess) -> None:
    """Write the workspace.yaml of an existing workspace."""
    from kvestigate.workspace.options import ExportOptions
    from kvestigate.workspace.spec import dump_workspace

    exported = await run.result(ExportOptions(name, node, root), via=via)
    if file == "-":
        sys.stdout.write(dump_workspace(exported.workspace))
        return
    path = Path(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be made: {error.strerror}", where=str(path.parent)) from error
    write_whole(path, dump_workspace(exported.workspace).encode())
    click.echo(f"wrote {file}", err=True)
