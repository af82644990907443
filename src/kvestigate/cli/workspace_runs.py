"""`kvestigate workspace run`, `ps`, `logs` and `kill`: processes in a workspace."""

from __future__ import annotations

import codecs
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from kvestigate.cli import workspace_files
from kvestigate.cli.command import operation_command
from kvestigate.cli.jobs import pairs
from kvestigate.cli.output import emit_log
from kvestigate.cli.parameters import whole_number
from kvestigate.cli.run import Run
from kvestigate.cli.workspace import described, workspace
from kvestigate.errors import UsageError
from kvestigate.node_access.model import NodeAccess

if TYPE_CHECKING:
    from kvestigate.workspace.spec import WorkspaceSpec

__all__ = ["workspace", "workspace_files"]

_MOST_LINES = 10_000_000
_MOST_GPUS = 1024


@operation_command(
    "workspace.run",
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
async def run_(
    run: Run,
    words: tuple[str, ...],
    tag: str,
    gpus: tuple[int, ...],
    envs: tuple[str, ...],
    cpu: str,
    memory: str,
    spec: WorkspaceSpec,
    via: NodeAccess,
) -> None:
    """Start a process in a workspace, with GPUs bound by UUID.

    It runs in the code directory and goes on when this command has ended; `ps`, `logs` and
    `kill` look after it. GPUs are bound in CUDA_VISIBLE_DEVICES. If the workspace has env/bin,
    it is on the PATH. Limits are kept by systemd, by a cgroup or by those of a process,
    whichever the host has.
    """
    from kvestigate.workspace.limits import Limits
    from kvestigate.workspace.options import RunOptions

    env, limits = pairs("--env", envs), Limits(cpu, memory)
    await run(RunOptions(spec, tag, words, gpus, env, limits), via=via)


@operation_command(
    "workspace.logs",
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
@click.option(
    "--grep",
    default="",
    metavar="PATTERN",
    help="Only lines that match this regular expression (RE2); not with --follow.",
)
@described
async def logs(
    run: Run,
    tag: str,
    follow: bool,
    tail: int | None,
    grep: str,
    spec: WorkspaceSpec,
    via: NodeAccess,
) -> None:
    """Show the log of a run."""
    from kvestigate.workspace import runs
    from kvestigate.workspace.options import LogsOptions

    options = LogsOptions(spec, tag, tail, grep)
    if grep and follow:
        raise UsageError("--grep and --follow cannot be combined")
    if not follow:
        await run(options, via=via)
        return
    async with aclosing(runs.follow(run.context(via), options)) as pieces:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # pieces may end in a character
        async for piece in pieces:
            emit_log(decoder.decode(piece))
            sys.stdout.flush()
