"""`kvestigate workspace run`, `ps`, `logs` and `kill`: processes in a workspace."""

from __future__ import annotations

import sys
from contextlib import aclosing
from dataclasses import replace

import click

from kvestigate.cli import workspace_files
from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.job_files import pairs
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import whole_number
from kvestigate.cli.workspace import described, meant, workspace
from kvestigate.node_access.model import NodeAccess
from kvestigate.workspace.spec import WorkspaceSpec

__all__ = ["workspace", "workspace_files"]

_MOST_LINES = 10_000_000
_MOST_GPUS = 1024


@command(
    "run",
    into=workspace,
    examples=(
        "kvestigate workspace run --config workspace.yaml --tag train-001 --gpu 0 --gpu 1 "
        "-- python train.py --epochs 10",
        "kvestigate workspace run --config workspace.yaml --tag train-001 --env SEED=3 "
        "--apply --i-understand-this-modifies-hosts -- python train.py",
    ),
)
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("--tag", required=True, metavar="TAG", help="What to call the run.")
@click.option(
    "--gpu",
    "gpus",
    type=whole_number(0, _MOST_GPUS),
    multiple=True,
    metavar="N",
    help="GPU of the host to bind; repeatable. Those of the workspace when not given.",
)
@click.option(
    "--env", "envs", multiple=True, metavar="K=V", help="Variable of the run; repeatable."
)
@click.option("--cpu", default="", metavar="AMOUNT", help="CPUs that it may take: 2, 1500m.")
@click.option("--memory", default="", metavar="AMOUNT", help="Memory that it may take: 4Gi.")
@described
@writes(Consequence.MODIFIES_HOSTS)
async def run(
    options: GlobalOptions,
    words: tuple[str, ...],
    tag: str,
    gpus: tuple[int, ...],
    envs: tuple[str, ...],
    cpu: str,
    memory: str,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
    confirmation: Confirmation,
) -> None:
    """Start a command on the host, in the code directory of a workspace.

    It goes on when this command has ended; `ps`, `logs` and `kill` look after it. GPUs are
    bound by UUID in CUDA_VISIBLE_DEVICES. If the workspace has env/bin, it is on the PATH.
    Limits are kept by systemd, by a cgroup or by those of a process, whichever the host has.
    """
    from kvestigate.workspace.limits import Limits
    from kvestigate.workspace.options import RunOptions
    from kvestigate.workspace.rendering import launch_blocks
    from kvestigate.workspace.runs import run as collect

    wanted = RunOptions(
        spec,
        tag,
        words,
        gpus,
        pairs("--env", envs),
        Limits(cpu, memory),
        apply=meant(confirmation),
    )
    done = await collect(access_of(options), wanted, via)
    emit(options, done, launch_blocks)
    confirmation.require()


@command("ps", into=workspace, examples=("kvestigate workspace ps --config workspace.yaml",))
@described
async def ps(options: GlobalOptions, spec: WorkspaceSpec, config: str, via: NodeAccess) -> None:
    """List the runs of a workspace, and how they ended.

    The exit code is `?` if the node went down before the run had ended.
    """
    from kvestigate.workspace.options import PsOptions
    from kvestigate.workspace.rendering import runs_blocks
    from kvestigate.workspace.runs import ps as collect

    emit(options, await collect(access_of(options), PsOptions(spec), via), runs_blocks)


@command(
    "logs",
    into=workspace,
    examples=(
        "kvestigate workspace logs train-001 --config workspace.yaml --tail 100",
        "kvestigate workspace logs train-001 --config workspace.yaml -f",
    ),
)
@click.argument("tag")
@click.option("-f", "--follow", is_flag=True, help="Go on until the run has ended.")
@click.option(
    "--tail",
    type=whole_number(0, _MOST_LINES),
    metavar="N",
    help="Only the last N lines; all when not given.",
)
@described
async def logs(
    options: GlobalOptions,
    tag: str,
    follow: bool,
    tail: int | None,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
) -> None:
    """Show what a run has said."""
    from kvestigate.workspace import runs
    from kvestigate.workspace.options import LogsOptions
    from kvestigate.workspace.rendering import log_blocks

    wanted = LogsOptions(spec, tag, tail)
    if not follow:
        emit(options, await runs.logs(access_of(options), wanted, via), log_blocks)
        return
    async with aclosing(runs.follow(access_of(options), wanted, via)) as pieces:
        async for piece in pieces:
            sys.stdout.write(piece.decode("utf-8", "replace"))
            sys.stdout.flush()


@command(
    "kill",
    into=workspace,
    examples=(
        "kvestigate workspace kill train-001 --config workspace.yaml "
        "--signal TERM --i-understand-this-modifies-hosts",
    ),
)
@click.argument("tag")
@click.option(
    "--signal", default="TERM", show_default=True, metavar="NAME", help="TERM, INT, KILL, USR1..."
)
@described
@writes(Consequence.MODIFIES_HOSTS)
async def kill(
    options: GlobalOptions,
    tag: str,
    signal: str,
    spec: WorkspaceSpec,
    config: str,
    via: NodeAccess,
    confirmation: Confirmation,
) -> None:
    """Send a signal to a run and all processes of its group.

    --apply may be left out.
    """
    from kvestigate.workspace.options import KillOptions
    from kvestigate.workspace.rendering import killing_blocks
    from kvestigate.workspace.runs import kill as collect

    name = signal.upper().removeprefix("SIG")
    wanted = KillOptions(spec, tag, name, apply=confirmation.understood)
    done = await collect(access_of(options), wanted, via)
    emit(options, done, killing_blocks)
    if done.plan.steps:
        replace(confirmation, apply=True).require()
