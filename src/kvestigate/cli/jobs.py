"""`kvestigate jobs`: SkyPilot tasks on any Kubernetes cluster; `job_runs` starts them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import click

from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.job_server import serve_launcher, server_options
from kvestigate.cli.launching import launcher_of
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit, emit_message
from kvestigate.errors import UsageError

F = TypeVar("F")


@group("jobs")
def jobs() -> None:
    """Launch SkyPilot tasks on Kubernetes and look after them."""


def all_users_option(function: F) -> F:
    option: Any = click.option(
        "--all-users", is_flag=True, help="Include the tasks or volumes of all users."
    )
    decorated: F = option(function)
    return decorated


@command(
    "list",
    into=jobs,
    examples=("kvestigate jobs list", "kvestigate jobs list --details --all-users"),
)
@click.option("--details", is_flag=True, help="Also show user, namespace and jobs.")
@all_users_option
async def list_(options: GlobalOptions, details: bool, all_users: bool) -> None:
    """List tasks, newest first."""
    from kvestigate.jobs.rendering import task_list_blocks

    async with launcher_of(options) as launcher:
        listed = await launcher.list_tasks(all_users=all_users)
    emit(options, listed, partial(task_list_blocks, details=details, all_users=all_users))


@command(
    "queue",
    into=jobs,
    examples=("kvestigate jobs queue", "kvestigate jobs queue --all-users -o wide"),
)
@all_users_option
async def queue(options: GlobalOptions, all_users: bool) -> None:
    """Show pending and running tasks, oldest first."""
    from kvestigate.jobs.rendering import queue_blocks
    from kvestigate.jobs.tasks.statuses import queued

    async with launcher_of(options) as launcher:
        listed = queued(await launcher.list_tasks(all_users=all_users))
    now = datetime.now(UTC).replace(tzinfo=None)
    emit(options, listed, partial(queue_blocks, now=now, all_users=all_users))


@command(
    "history",
    into=jobs,
    examples=("kvestigate jobs history", "kvestigate jobs history --all-users -o json"),
)
@all_users_option
async def history(options: GlobalOptions, all_users: bool) -> None:
    """List submitted tasks, also those that no longer exist."""
    from kvestigate.jobs.rendering import history_blocks

    async with launcher_of(options) as launcher:
        found = await launcher.history(all_users=all_users)
    emit(options, found, partial(history_blocks, all_users=all_users))


@command("endpoint", into=jobs, examples=("kvestigate jobs endpoint abc12345",))
@click.argument("task_id")
async def endpoint(options: GlobalOptions, task_id: str) -> None:
    """Show the addresses of a task's ports."""
    from kvestigate.jobs.rendering import endpoint_blocks

    async with launcher_of(options) as launcher:
        emit(options, await launcher.endpoint(task_id), endpoint_blocks)


@command(
    "status",
    into=jobs,
    examples=("kvestigate jobs status abc12345", "kvestigate jobs status abc12345 --watch"),
)
@click.argument("task_id")
@click.option("--watch", is_flag=True, help="Show the state of the nodes until the task ends.")
async def status(options: GlobalOptions, task_id: str, watch: bool) -> None:
    """Show one task and the state of its nodes."""
    from kvestigate.cli.job_live import show_live
    from kvestigate.jobs.rendering import task_blocks

    async with launcher_of(options) as launcher:
        if watch:
            await show_live(options, launcher, task_id)
            return
        emit(options, await launcher.task(task_id), task_blocks)


@command("why", into=jobs, examples=("kvestigate jobs why abc12345",))
@click.argument("task_id")
async def why(options: GlobalOptions, task_id: str) -> None:
    """Explain why a task waits or has failed, and what would make it run."""
    from kvestigate.jobs.rendering import explanation_blocks

    async with launcher_of(options) as launcher:
        emit(options, await launcher.why(task_id), explanation_blocks)


async def _stop(
    options: GlobalOptions, task_id: str | None, all_tasks: bool, all_users: bool
) -> None:
    if (task_id is None) is not all_tasks or (all_users and not all_tasks):
        raise UsageError(
            "name a task or give --all, and --all-users only with --all",
            hint="`k8s-cli jobs list` shows the tasks",
        )
    async with launcher_of(options) as launcher:
        if task_id is not None:
            emit_message(options, await launcher.stop(task_id))
        else:
            emit_message(options, await launcher.stop_all(all_users=all_users))


def _stops(function: F) -> F:
    """What `stop` and its alias take."""
    for option in (
        all_users_option,
        click.option("--all", "all_tasks", is_flag=True, help="All of your tasks."),
        click.argument("task_id", required=False),
    ):
        decorate: Any = option
        function = decorate(function)
    return function


@command(
    "stop",
    into=jobs,
    examples=("kvestigate jobs stop abc12345", "kvestigate jobs stop --all"),
)
@_stops
async def stop(
    options: GlobalOptions, task_id: str | None, all_tasks: bool, all_users: bool
) -> None:
    """Stop a task, or all of them; its jobs and pods are deleted."""
    await _stop(options, task_id, all_tasks, all_users)


@command("cancel", into=jobs, examples=("kvestigate jobs cancel abc12345",))
@_stops
async def cancel(
    options: GlobalOptions, task_id: str | None, all_tasks: bool, all_users: bool
) -> None:
    """The same as `stop`."""
    await _stop(options, task_id, all_tasks, all_users)


@command(
    "serve",
    into=jobs,
    examples=(
        "kvestigate jobs serve",
        "kvestigate jobs serve --config users.yaml --host 0.0.0.0",
    ),
)
@server_options
async def serve(options: GlobalOptions, host: str, port: int | None, config: str | None) -> None:
    """Serve tasks and volumes over HTTP.

    The header X-User says who is asking, on loopback alone; with tokens or an OpenID Connect
    issuer in --config users prove it, from anywhere. Everything is kept in the cluster.
    """
    await serve_launcher(options, host, port, config)
