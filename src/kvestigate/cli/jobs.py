"""`kvestigate jobs`: the commands that follow a task or enter it; the others are derived."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.command import command, operation_command
from kvestigate.cli.files import read_whole
from kvestigate.cli.group import group
from kvestigate.cli.job_server import serve
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit, emit_log
from kvestigate.cli.parameters import duration, whole_number
from kvestigate.cli.progress import counting, said_if_silent
from kvestigate.cli.run import Run
from kvestigate.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from kvestigate.jobs.answers import TaskSubmitResponse
    from kvestigate.jobs.files.archive import Archive
    from kvestigate.jobs.files.uploading import Progress
    from kvestigate.jobs.interface import Launcher, LogRequest
    from kvestigate.jobs.tasks.model import Task

_SHELL = ("/bin/sh", "-c", "exec $(command -v bash || command -v sh)")


@group("jobs")
def jobs() -> None:
    """Launch SkyPilot tasks on Kubernetes and look after them."""


jobs.add_command(serve)


@operation_command(
    "jobs.status",
    into=jobs,
    examples=("kvestigate jobs status abc12345", "kvestigate jobs status abc12345 --watch"),
)
@click.argument("task_id")
@click.option("--watch", is_flag=True, help="Show the state of the nodes until the task ends.")
async def status(run: Run, task_id: str, watch: bool) -> None:
    """Show one task and the state of its nodes."""
    from kvestigate.cli.job_live import show_live
    from kvestigate.jobs.interface import OneTask
    from kvestigate.jobs.launching import launcher_of

    if not watch:
        await run(OneTask(task_id))
        return
    async with launcher_of(run.context().resolve) as launcher:
        await show_live(run.options, launcher, task_id)


@operation_command(
    "jobs.submit",
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
@click.option("--strict", is_flag=True, help="Fail if a field of the file would be ignored.")
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
    run: Run,
    /,
    file: str,
    detach: bool,
    dry_run: bool,
    envs: Sequence[str],
    secrets: Sequence[str],
    watch: bool,
    strict: bool,
    **limits: Any,
) -> int:
    """Start a task from a SkyPilot YAML file (`-` for standard input) and follow its log."""
    from kvestigate.jobs.launching import launcher_of
    from kvestigate.jobs.tasks.limits import with_limits
    from kvestigate.jobs.tasks.parse import parse_task, with_variables
    from kvestigate.kube.documents import one_document

    given = {"envs": pairs("--env", envs), "secrets": pairs("--secret", secrets)}
    written = one_document(read_whole(file), file, "task")
    with written.mistakes():
        document = with_limits(with_variables(written.value, **given), **limits)
        task = parse_task(document)
    if task.ignored:
        click.echo(f"ignored here: {', '.join(task.ignored)}", err=True)
    with _packed(task) as archive:
        async with launcher_of(run.context().resolve) as launcher:
            if dry_run:
                await _show_plan(run.options, launcher, document, archive, strict=strict)
                return EXIT_OK
            # Before a log there is a line for people: the two together are no JSON.
            line = run if detach else replace(run, options=replace(run.options, output="table"))
            task_id = await _submit(
                line, launcher, document, archive, task.num_nodes, strict=strict
            )
            if detach:
                return EXIT_OK
            return await _see_to_the_end(run.options, launcher, task_id, watch=watch)


def pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, or `NAME` for a variable of our own environment."""
    values = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals and name in os.environ:  # as `docker run -e NAME` has it
            value = os.environ[name]
        elif not equals:
            raise UsageError(f"{flag}: {item!r} is not NAME=VALUE", hint=f"{flag} NAME=VALUE")
        values[name] = value
    return values


@contextmanager
def _packed(task: Task) -> Iterator[Archive | None]:
    """The archive of what the task uploads, if it uploads anything."""
    if not task.uploads:
        yield None
        return
    from kvestigate.jobs.files.archive import packed

    with packed(task.uploads, Path.cwd()) as archive:
        yield archive


@contextmanager
def _uploading() -> Iterator[Progress]:
    with counting("uploading") as counter:
        yield lambda done, total: counter("pieces", done, total) if counter else None


async def _submit(
    run: Run,
    launcher: Launcher,
    document: dict[str, Any],
    archive: Archive | None,
    nodes: int,
    *,
    strict: bool,
) -> str:
    from kvestigate.jobs.files.uploading import put_pieces, send_parts

    if archive is None:
        submitted = await launcher.submit(document, strict=strict)
        _show_submitted(run, submitted)
        return submitted.task_id
    with _uploading() as progress:
        await put_pieces(launcher, archive, progress)
        files = archive.files
        submitted = await launcher.submit(document, files.digest, files.pieces, strict)
    _show_submitted(run, submitted)
    with _uploading() as progress:
        await send_parts(launcher, submitted.task_id, nodes, archive, progress)
    return submitted.task_id


def _show_submitted(run: Run, submitted: TaskSubmitResponse) -> None:
    """The ID on standard output, what is ignored beside it."""
    message, _, ignored = submitted.message.partition("\n")
    emit(run.options, replace(submitted, message=message), run.operation.render)
    if ignored:
        click.echo(ignored, err=True)


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
    explanation = await launcher.why(task_id)
    click.echo(f"Task {task.task_id} failed: {explanation.causes[0]}", err=True)
    return EXIT_FAILED


async def _show_plan(
    options: GlobalOptions,
    launcher: Launcher,
    document: dict[str, Any],
    archive: Archive | None,
    *,
    strict: bool,
) -> None:
    from kvestigate.render.encode import to_json, to_yaml

    digest, pieces = ("", ()) if archive is None else (archive.files.digest, archive.files.pieces)
    plan = await launcher.plan(document, digest, pieces, strict)
    for field in plan.ignored:
        click.echo(f"ignored here: {field}", err=True)
    manifests = plan.manifests
    if options.output == "json":
        sys.stdout.write(to_json({"apiVersion": "v1", "kind": "List", "items": manifests}).decode())
        return
    sys.stdout.write("---\n".join(to_yaml(manifest) for manifest in manifests))


@operation_command(
    "jobs.logs",
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
    run: Run,
    task_id: str,
    follow: bool,
    tail: int | None,
    since: float | None,
    node: int | None,
) -> None:
    """Print the log of all nodes of a task."""
    from kvestigate.jobs.interface import LogRequest
    from kvestigate.jobs.launching import launcher_of

    seconds = None if since is None else max(int(since), 1)
    async with launcher_of(run.context().resolve) as launcher:
        await _print_lines(launcher, task_id, LogRequest(follow, tail, seconds, node))


async def _print_lines(launcher: Launcher, task_id: str, request: LogRequest) -> None:
    waiting = f"no log lines yet; `k8s-cli jobs why {task_id}` shows what the task waits for"
    with said_if_silent(waiting) as heard:
        async with aclosing(launcher.logs(task_id, request)) as lines:
            async for line in lines:
                heard()
                if sys.stdout.isatty():
                    emit_log(line.decode("utf-8", "replace") + "\n")
                    sys.stdout.flush()
                    continue
                # Bytes as the program wrote them: a log may hold anything.
                sys.stdout.flush()
                sys.stdout.buffer.write(line + b"\n")
                sys.stdout.buffer.flush()


_node_option = click.option(
    "--node", type=whole_number(0, 10**6), default="0", show_default=True, help="Which node."
)


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
    """Run a command in a node of a running task; exits with the code of the command."""
    return await _enter(options, task_id, words, node, stdin=stdin, tty=tty)


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
    """Open a shell in a node of a running task."""
    return await _enter(options, task_id, _SHELL, node, stdin=True, tty=sys.stdin.isatty())


async def _enter(
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
    from kvestigate.jobs.launching import launcher_of

    if tty and not (stdin and sys.stdin.isatty()):
        click.echo("standard input is not a terminal: the command runs without one", err=True)
        tty = False
    async with launcher_of(partial(access_of, options)) as launcher:
        request = ExecRequest(words, node, stdin, tty)
        async with await launcher.session(task_id, request) as running:
            return await run_attached(running, stdin=stdin, tty=tty)
