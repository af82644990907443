"""`kvestigate jobs submit`, `logs`, `exec` and `attach`: tasks started, followed and entered."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvestigate.cli.command import command
from kvestigate.cli.job_files import packed_files, pairs, progress_bar, task_file
from kvestigate.cli.jobs import jobs
from kvestigate.cli.launching import launcher_of
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit_message
from kvestigate.cli.parameters import duration, whole_number
from kvestigate.cli.progress import said_if_silent
from kvestigate.errors import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from kvestigate.jobs.files.archive import Archive
    from kvestigate.jobs.interface import Launcher, LogRequest

__all__ = ["jobs"]

F = TypeVar("F")

_SHELL = ("/bin/sh", "-c", "exec $(command -v bash || command -v sh)")


@command(
    "submit",
    into=jobs,
    examples=(
        "kvestigate jobs submit task.yaml",
        "kvestigate jobs submit task.yaml --detach --env EPOCHS=3",
        "kvestigate jobs submit task.yaml --dry-run",
    ),
)
@click.argument("file", metavar="TASK.yaml")
@click.option("--detach", "-d", is_flag=True, help="Do not follow the log.")
@click.option("--dry-run", is_flag=True, help="Print the exact manifests and create nothing.")
@click.option(
    "--env", "envs", multiple=True, metavar="K=V", help="Variable of the task; repeatable."
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="K=V",
    help="Secret variable of the task; repeatable.",
)
@click.option("--watch", is_flag=True, help="Show the state of the nodes instead of the log.")
@click.option("--queue", metavar="NAME", help="Kueue's LocalQueue that admits the task.")
@click.option(
    "--start-within",
    "start",
    type=duration,
    help="Time within which all nodes must run; 24h if not given.",
)
@click.option(
    "--deadline", type=duration, help="Time within which the task must be done; 30d if not given."
)
@click.option(
    "--ttl", type=duration, help="How long the task is kept after its end; 7d if not given."
)
async def submit(
    options: GlobalOptions,
    file: str,
    detach: bool,
    dry_run: bool,
    envs: Sequence[str],
    secrets: Sequence[str],
    watch: bool,
    queue: str | None,
    start: float | None,
    deadline: float | None,
    ttl: float | None,
) -> int:
    """Start a task from a SkyPilot YAML file (`-` for standard input) and follow its log."""
    from kvestigate.jobs.tasks.limits import with_limits
    from kvestigate.jobs.tasks.parse import parse_task, with_variables

    given = {"envs": pairs("--env", envs), "secrets": pairs("--secret", secrets)}
    written = task_file(file)
    with written.mistakes():
        document = with_variables(written.value, **given)
        document = with_limits(document, queue=queue, start=start, deadline=deadline, ttl=ttl)
        task = parse_task(document)
    for path in task.without_effect:
        click.echo(f"note: {path} has no effect on a Kubernetes cluster", err=True)
    with packed_files(task) as archive:
        async with launcher_of(options) as launcher:
            if dry_run:
                await _show_plan(options, launcher, document, archive)
                return EXIT_OK
            # Before a log there is a line for people: the two together are no JSON.
            said = options if detach else replace(options, output="table")
            task_id = await _submit(said, launcher, document, archive, task.num_nodes)
            if detach:
                return EXIT_OK
            return await _see_to_the_end(options, launcher, task_id, watch=watch)


async def _submit(
    options: GlobalOptions,
    launcher: Launcher,
    document: dict[str, Any],
    archive: Archive | None,
    nodes: int,
) -> str:
    from kvestigate.jobs.files.uploading import put_pieces, send_parts

    if archive is None:
        submitted = await launcher.submit(document)
        emit_message(options, submitted)
        return submitted.task_id
    with progress_bar("uploading") as progress:
        await put_pieces(launcher, archive, progress)
        submitted = await launcher.submit(document, archive.files)
    emit_message(options, submitted)
    with progress_bar("uploading") as progress:
        await send_parts(launcher, submitted.task_id, nodes, archive, progress)
    return submitted.task_id


async def _see_to_the_end(
    options: GlobalOptions, launcher: Launcher, task_id: str, *, watch: bool
) -> int:
    from kvestigate.cli.job_live import show_live
    from kvestigate.jobs.interface import LogRequest

    task = await show_live(options, launcher, task_id) if watch else None
    if not watch:
        await _print_lines(launcher, task_id, LogRequest())
    if task is None:
        task = await launcher.task(task_id)
    if task.status.value != "failed":
        click.echo(f"Task {task.task_id} {task.status.value}", err=True)
        return EXIT_OK
    said = await launcher.why(task_id)
    click.echo(f"Task {task.task_id} failed: {said.causes[0]}", err=True)
    return EXIT_FAILED


async def _show_plan(
    options: GlobalOptions, launcher: Launcher, document: dict[str, Any], archive: Archive | None
) -> None:
    plan = await launcher.plan(document, None if archive is None else archive.files)
    manifests = plan.manifests
    if options.output == "json":
        from kvestigate.render.encode import to_json

        sys.stdout.write(to_json({"apiVersion": "v1", "kind": "List", "items": manifests}).decode())
        return
    from kvestigate.render.encode import to_yaml

    sys.stdout.write("---\n".join(to_yaml(manifest) for manifest in manifests))


@command(
    "logs",
    into=jobs,
    examples=(
        "kvestigate jobs logs abc12345",
        "kvestigate jobs logs abc12345 --no-follow --tail 20 --node 1",
    ),
)
@click.argument("task_id")
@click.option(
    "--follow/--no-follow", default=True, help="Continue until the task ends; the default."
)
@click.option("--tail", type=whole_number(0, 10**9), metavar="N", help="Only the last N lines.")
@click.option("--since", type=duration, help="Only lines not older than this (10m, 1h).")
@click.option("--node", type=whole_number(0, 10**6), metavar="N", help="Only lines of node N.")
async def logs(
    options: GlobalOptions,
    task_id: str,
    follow: bool,
    tail: int | None,
    since: float | None,
    node: int | None,
) -> None:
    """Print the log of all nodes of a task."""
    from kvestigate.jobs.interface import LogRequest

    seconds = None if since is None else max(int(since), 1)
    async with launcher_of(options) as launcher:
        await _print_lines(launcher, task_id, LogRequest(follow, tail, seconds, node))


async def _print_lines(launcher: Launcher, task_id: str, request: LogRequest) -> None:
    waiting = f"no log lines yet; `k8s-cli jobs why {task_id}` shows what the task waits for"
    with said_if_silent(waiting) as heard:
        async with aclosing(launcher.logs(task_id, request)) as lines:
            async for line in lines:
                heard()
                # Bytes as the program wrote them: a log may hold anything.
                sys.stdout.flush()
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()


def _node_option(function: F) -> F:
    option: Any = click.option(
        "--node", type=whole_number(0, 10**6), default="0", show_default=True, help="Which node."
    )
    decorated: F = option(function)
    return decorated


@command(
    "exec",
    into=jobs,
    examples=(
        "kvestigate jobs exec abc12345 -- nvidia-smi",
        "kvestigate jobs exec abc12345 --node 1 -it -- bash",
    ),
)
@click.argument("task_id")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@_node_option
@click.option("-i", "--stdin", is_flag=True, help="Pass standard input to the command.")
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal; with -i.")
async def exec_(
    options: GlobalOptions,
    task_id: str,
    words: tuple[str, ...],
    node: int,
    stdin: bool,
    tty: bool,
) -> int:
    """Run a command in a node of a task that runs; its exit code is ours."""
    return await _in_node(options, task_id, words, node, stdin=stdin, tty=tty)


@command(
    "attach",
    into=jobs,
    examples=(
        "kvestigate jobs attach abc12345",
        "kvestigate jobs attach abc12345 --node 1",
    ),
)
@click.argument("task_id")
@_node_option
async def attach(options: GlobalOptions, task_id: str, node: int) -> int:
    """Open a shell in a node of a task that runs."""
    terminal = sys.stdin.isatty()
    return await _in_node(options, task_id, _SHELL, node, stdin=True, tty=terminal)


async def _in_node(
    options: GlobalOptions,
    task_id: str,
    words: tuple[str, ...],
    node: int,
    *,
    stdin: bool,
    tty: bool,
) -> int:
    from kvestigate.cli.attached import run_attached
    from kvestigate.jobs.interface import ExecRequest

    if tty and not (stdin and sys.stdin.isatty()):
        click.echo("standard input is not a terminal: the command runs without one", err=True)
        tty = False
    async with launcher_of(options) as launcher:
        request = ExecRequest(words, node, stdin, tty)
        async with await launcher.session(task_id, request) as running:
            return await run_attached(running, stdin=stdin, tty=tty)
