"""`kvestigate workspace`: directories on hosts, made, compared and removed."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.files import write_whole
from kvestigate.cli.group import command, group
from kvestigate.cli.node import toggle
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import ticking
from kvestigate.node_access.model import NodeAccess
from kvestigate.workspace.spec import DEFAULT_ROOT, WorkspaceSpec, load_workspace

if TYPE_CHECKING:
    from kvestigate.workspace.applying import Application

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
        return function(*args, spec=load_workspace(config), config=config, **kwargs)

    return call


def on_nodes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--node`, `--root` and how hosts are reached."""
    option: Callable[..., Any] = click.option(
        "--node", "nodes", multiple=True, metavar="NODE", help="Only this node; repeatable."
    )
    root: Callable[..., Any] = click.option(
        "--root",
        default=DEFAULT_ROOT,
        show_default=True,
        metavar="DIR",
        help="Another directory to look for workspaces in.",
    )
    decorated: Callable[..., Any] = option(root(through_daemon_set(function)))
    return decorated


@command(
    "status",
    into=workspace,
    examples=("kvestigate workspace status", "kvestigate workspace status --node node-02 -o wide"),
)
@on_nodes
async def status(
    options: GlobalOptions, nodes: tuple[str, ...], root: str, via: NodeAccess
) -> None:
    """List the workspaces of all nodes."""
    from kvestigate.workspace.lifecycle import status as collect
    from kvestigate.workspace.options import StatusOptions
    from kvestigate.workspace.rendering import status_blocks

    wanted = StatusOptions(nodes, root)
    with ticking("looking at the hosts"):
        found = await collect(access_of(options), wanted, via)
    emit(options, found, status_blocks)


@command(
    "gpus",
    into=workspace,
    examples=("kvestigate workspace gpus", "kvestigate workspace gpus --node node-02"),
)
@on_nodes
async def gpus(options: GlobalOptions, nodes: tuple[str, ...], root: str, via: NodeAccess) -> None:
    """Show which GPUs are free, and who has the others.

    What nvidia-smi says on the hosts is held against what Kubernetes and workspaces have given
    away: a GPU is free if no pod, no process and no workspace has it.
    """
    from kvestigate.workspace.lifecycle import gpus as collect
    from kvestigate.workspace.options import GpusOptions
    from kvestigate.workspace.rendering import gpus_blocks

    wanted = GpusOptions(nodes, root)
    with ticking("looking at the hosts"):
        found = await collect(access_of(options), wanted, via)
    emit(options, found, gpus_blocks)


@command(
    "create",
    into=workspace,
    examples=(
        "kvestigate workspace create --config workspace.yaml",
        f"kvestigate workspace create --config workspace.yaml {_MEANT}",
    ),
)
@described
@writes(Consequence.MODIFIES_HOSTS)
async def create(
    options: GlobalOptions,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
    confirmation: Confirmation,
) -> None:
    """Make the workspace that a file describes.

    Its directories are made on the node's host, memory is mounted where the storage mode says
    so, GPUs are reserved and the node is cordoned. If a step fails, what was done is taken
    back. A workspace that exists is left as it is.
    """
    from kvestigate.workspace.lifecycle import create as collect
    from kvestigate.workspace.options import CreateOptions
    from kvestigate.workspace.rendering import creation_blocks

    wanted = CreateOptions(spec, apply=meant(confirmation))
    with _ticking("creating", spec, confirmation):
        done = await collect(access_of(options), wanted, via)
    emit(options, done, creation_blocks)
    if done.plan.steps:
        confirmation.require()


@command(
    "destroy",
    into=workspace,
    examples=(
        "kvestigate workspace destroy --config workspace.yaml",
        f"kvestigate workspace destroy --config workspace.yaml {_MEANT}",
    ),
)
@described
@writes(Consequence.MODIFIES_HOSTS)
async def destroy(
    options: GlobalOptions,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
    confirmation: Confirmation,
) -> None:
    """Stop what runs in a workspace, and remove it.

    In all-tmpfs mode that is one umount and one rmdir, however much is in it. Only what has the
    marker of a workspace is removed. The node is uncordoned if it was cordoned for this
    workspace and no other one needs that.
    """
    from kvestigate.workspace.lifecycle import destroy as collect
    from kvestigate.workspace.options import DestroyOptions
    from kvestigate.workspace.rendering import destruction_blocks

    wanted = DestroyOptions(spec, apply=meant(confirmation))
    with _ticking("removing", spec, confirmation):
        done = await collect(access_of(options), wanted, via)
    emit(options, done, destruction_blocks)
    confirmation.require()


@command("diff", into=workspace, examples=("kvestigate workspace diff --config workspace.yaml",))
@described
async def diff(options: GlobalOptions, spec: WorkspaceSpec, config: str, via: NodeAccess) -> None:
    """Show what `apply` would do, and what it could not."""
    from kvestigate.workspace.applying import compared
    from kvestigate.workspace.rendering import comparison_blocks

    with ticking(f"comparing workspace {spec.name}"):
        found = await compared(access_of(options), spec, Path(config).parent, via)
    emit(options, found, comparison_blocks)


@command(
    "apply",
    into=workspace,
    examples=(
        "kvestigate workspace apply --config workspace.yaml",
        f"kvestigate workspace apply --config workspace.yaml {_MEANT}",
    ),
)
@described
@writes(Consequence.MODIFIES_HOSTS)
async def apply(
    options: GlobalOptions,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
    confirmation: Confirmation,
) -> None:
    """Make the workspace that a file describes, and bring all its sources into it.

    Sources are relative to the file. Only what changed is sent; nothing is removed.
    """
    from kvestigate.workspace.applying import applied
    from kvestigate.workspace.rendering import application_blocks

    with _ticking("applying", spec, confirmation):
        done: Application = await applied(
            access_of(options), spec, Path(config).parent, apply=meant(confirmation), via=via
        )
    emit(options, done, application_blocks)
    if done.creation.plan.steps or any(it.sent or it.removed for it in done.sources):
        confirmation.require()


@command(
    "export",
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
async def export(
    options: GlobalOptions, name: str, node: str, root: str, file: str, via: NodeAccess
) -> None:
    """Write the workspace.yaml of an existing workspace."""
    from kvestigate.workspace.lifecycle import recorded
    from kvestigate.workspace.spec import dump_workspace

    text = dump_workspace(await recorded(access_of(options), name, node, root, via))
    if file == "-":
        sys.stdout.write(text)
        return
    write_whole(Path(file), text.encode())
    click.echo(f"wrote {file}", err=True)


@command(
    "cordon",
    into=workspace,
    examples=("kvestigate workspace cordon node-02 --i-understand-this-modifies-cluster",),
)
@click.argument("name", metavar="NODE")
@writes(Consequence.MODIFIES_CLUSTER)
async def cordon(options: GlobalOptions, name: str, confirmation: Confirmation) -> None:
    """Keep pods from taking the GPUs that workspaces on NODE use.

    The same as `kvestigate node cordon`.
    """
    await toggle(options, name, True, confirmation)


@command(
    "uncordon",
    into=workspace,
    examples=("kvestigate workspace uncordon node-02 --i-understand-this-modifies-cluster",),
)
@click.argument("name", metavar="NODE")
@writes(Consequence.MODIFIES_CLUSTER)
async def uncordon(options: GlobalOptions, name: str, confirmation: Confirmation) -> None:
    """Let pods come to NODE again.

    The same as `kvestigate node uncordon`.
    """
    await toggle(options, name, False, confirmation)


def _ticking(
    doing: str, spec: WorkspaceSpec, confirmation: Confirmation
) -> AbstractContextManager[None]:
    return ticking(f"{doing if meant(confirmation) else 'planning'} workspace {spec.name}")


def meant(confirmation: Confirmation) -> bool:
    return confirmation.apply and confirmation.understood
