"""`kvestigate jobs`: SkyPilot tasks on any Kubernetes cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvestigate.cli.group import Group, command, group
from kvestigate.cli.launching import API_URL, in_process, launcher_of
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import duration, whole_number
from kvestigate.errors import EXIT_FAILED, EXIT_OK, InputError, UsageError

if TYPE_CHECKING:
    from kvestigate.jobs.launcher import Launcher, LogRequest

F = TypeVar("F")

API_PORT = "K8S_CLI_API_PORT"
_HIGHEST_PORT = 65535


@group("jobs")
def jobs() -> None:
    """Launch SkyPilot tasks on Kubernetes and look after them."""


def all_users_option(function: F) -> F:
    option: Any = click.option("--all-users", is_flag=True, help="Those of all users, not yours.")
    decorated: F = option(function)
    return decorated


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
@click.option("--secret", "secrets", multiple=True, metavar="K=V", help="Secret one; repeatable.")
async def submit(
    options: GlobalOptions,
    file: str,
    detach: bool,
    dry_run: bool,
    envs: Sequence[str],
    secrets: Sequence[str],
) -> int:
    """Start a task from a SkyPilot YAML file (`-` for standard input) and follow its log."""
    document = read_task(file, _pairs("--env", envs), _pairs("--secret", secrets))
    if dry_run:
        await _show_plan(options, document)
        return EXIT_OK
    async with launcher_of(options) as launcher:
        submitted = await launcher.submit(document)
        click.echo(submitted.message)
        if detach:
            return EXIT_OK
        from kvestigate.jobs.launcher import LogRequest

        await _print_lines(launcher, submitted.task_id, LogRequest())
        task = await launcher.task(submitted.task_id)
    click.echo(f"Task {task.task_id} {task.status.value}", err=True)
    return EXIT_FAILED if task.status.value == "failed" else EXIT_OK


@command(
    "list",
    into=jobs,
    examples=("kvestigate jobs list", "kvestigate jobs list --details --all-users"),
)
@click.option("--details", is_flag=True, help="Also show user, namespace and jobs.")
@all_users_option
async def list_(options: GlobalOptions, details: bool, all_users: bool) -> None:
    """List tasks, newest first."""
    from kvestigate.jobs.views import task_list_blocks

    async with launcher_of(options) as launcher:
        listed = await launcher.list_tasks(all_users=all_users)
    emit(options, listed, partial(task_list_blocks, details=details))


@command("status", into=jobs, examples=("kvestigate jobs status abc12345",))
@click.argument("task_id")
async def status(options: GlobalOptions, task_id: str) -> None:
    """Show one task and how its nodes fare."""
    from kvestigate.jobs.views import task_blocks

    async with launcher_of(options) as launcher:
        emit(options, await launcher.task(task_id), task_blocks)


@command("why", into=jobs, examples=("kvestigate jobs why abc12345",))
@click.argument("task_id")
async def why(options: GlobalOptions, task_id: str) -> None:
    """Explain why a task waits or has failed, and what would make it run."""
    from kvestigate.jobs.views import explanation_blocks

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
            click.echo((await launcher.stop(task_id)).message)
        else:
            click.echo((await launcher.stop_all(all_users=all_users)).message)


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
    "logs",
    into=jobs,
    examples=(
        "kvestigate jobs logs abc12345",
        "kvestigate jobs logs abc12345 --no-follow --tail 20 --node 1",
    ),
)
@click.argument("task_id")
@click.option("--follow/--no-follow", default=True, help="Go on until the task ends; the default.")
@click.option("--tail", type=whole_number(0, 10**9), metavar="N", help="Only the last N lines.")
@click.option("--since", type=duration, help="Only lines not older than this (10m, 1h).")
@click.option("--node", type=whole_number(0, 10**6), metavar="N", help="Only those of node N.")
async def logs(
    options: GlobalOptions,
    task_id: str,
    follow: bool,
    tail: int | None,
    since: float | None,
    node: int | None,
) -> None:
    """Print the log of all nodes of a task."""
    from kvestigate.jobs.launcher import LogRequest

    seconds = None if since is None else max(int(since), 1)
    async with launcher_of(options) as launcher:
        await _print_lines(launcher, task_id, LogRequest(follow, tail, seconds, node))


async def _serve(options: GlobalOptions, host: str, port: int | None) -> None:
    from kvestigate.cli.cluster import access_of
    from kvestigate.client.connect import connect
    from kvestigate.jobs.serve import bound, run

    listening = bound(host, _port() if port is None else port)
    with listening:
        async with connect(access_of(options)) as api:
            await run(api, listening, _announce)


def _port() -> int:
    text = os.environ.get(API_PORT) or "8000"
    if not text.isdecimal() or int(text) > _HIGHEST_PORT:
        raise UsageError(f"{API_PORT}: {text!r} is no port", hint=f"{API_PORT}=8000")
    return int(text)


def _announce(url: str) -> None:
    click.echo(f"serving tasks and volumes at {url}")
    click.echo(f"next: export {API_URL}={url}")
    sys.stdout.flush()


def _serves(function: F) -> F:
    """What `serve` takes, in a group or on its own."""
    for option in (
        click.option(
            "--port",
            type=whole_number(0, _HIGHEST_PORT),
            help=f"Port to listen on; ${API_PORT}, else 8000.",
        ),
        click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address."),
    ):
        decorate: Any = option
        function = decorate(function)
    return function


@command("serve", into=jobs, examples=("kvestigate jobs serve", "kvestigate jobs serve --port 0"))
@_serves
async def serve(options: GlobalOptions, host: str, port: int | None) -> None:
    """Serve tasks and volumes over HTTP to the users of this machine.

    The header X-User says who is asking; nothing is kept but in the cluster.
    """
    await _serve(options, host, port)


@command("serve", examples=("k8s-cli serve", "k8s-cli serve --port 0"))
@_serves
async def serve_alone(options: GlobalOptions, host: str, port: int | None) -> None:
    """Serve tasks and volumes over HTTP to the users of this machine.

    The header X-User says who is asking; nothing is kept but in the cluster.
    """
    await _serve(options, host, port)


def read_task(file: str, envs: dict[str, str], secrets: dict[str, str]) -> dict[str, Any]:
    """The one document of a file, with variables from the command line."""
    from kvestigate.jobs.parse import parse_task, with_variables
    from kvestigate.kube.yaml_documents import load

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read the file: {reason}", where=file) from error
    documents = load(data, file)
    if len(documents) != 1:
        raise InputError(f"holds {len(documents)} documents, not one task", where=file)
    document = with_variables(documents[0].value, envs=envs, secrets=secrets)
    task = parse_task(document)
    for path in task.without_effect:
        click.echo(f"note: {path} has no effect on a Kubernetes cluster", err=True)
    return document


def _pairs(flag: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals and name in os.environ:  # as `docker run -e NAME` has it
            value = os.environ[name]
        elif not equals:
            raise UsageError(f"{flag}: {item!r} is not NAME=VALUE", hint=f"{flag} NAME=VALUE")
        found[name] = value
    return found


async def _show_plan(options: GlobalOptions, document: dict[str, Any]) -> None:
    if os.environ.get(API_URL):
        raise UsageError(
            f"--dry-run works without a server, and {API_URL} names one", hint=f"unset {API_URL}"
        )
    async with in_process(options) as launcher:
        manifests = await launcher.plan(document)
    if options.output == "json":
        from kvestigate.render.encode import to_json

        sys.stdout.write(to_json({"apiVersion": "v1", "kind": "List", "items": manifests}).decode())
        return
    from kvestigate.render.encode import to_yaml

    sys.stdout.write("---\n".join(to_yaml(manifest) for manifest in manifests))


async def _print_lines(launcher: Launcher, task_id: str, request: LogRequest) -> None:
    from contextlib import aclosing

    async with aclosing(launcher.logs(task_id, request)) as lines:
        async for line in lines:
            # Bytes as the program wrote them: a log may hold anything.
            sys.stdout.flush()
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()


def renamed(original: Group, program: str) -> Group:
    """The same group for another program, with examples that name that one."""
    import copy

    twin = copy.copy(original)
    twin.commands = {}
    for name, member in original.commands.items():
        made: Any = copy.copy(member)
        made.examples = tuple(f"{program} {example.partition(' ')[2]}" for example in made.examples)
        twin.commands[name] = made
    return twin
