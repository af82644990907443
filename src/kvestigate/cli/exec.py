"""`kvestigate exec`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.run import Run
from kvestigate.errors import UsageError

if TYPE_CHECKING:
    from kvestigate.inspection.execute import ExecOptions


@operation_command(
    "exec",
    examples=(
        "kvestigate exec web-0 -n shop -- ls /",
        "kvestigate exec -it deployment/web -- sh",
        "kvestigate exec model-0 --transport kubectl -- nvidia-smi",
    ),
)
@click.argument("target")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option("-c", "--container", default="", metavar="NAME", help="Container to run it in.")
@click.option("-i", "--stdin", is_flag=True, help="Pass standard input to the command.")
@click.option("-t", "--tty", is_flag=True, help="Give the command a terminal; with -i.")
@click.option(
    "--transport",
    type=click.Choice(["ws", "kubectl"]),
    default="ws",
    show_default=True,
    help="ws: WebSocket in this process. kubectl: the kubectl on the PATH.",
)
async def exec_(
    run: Run,
    target: str,
    words: tuple[str, ...],
    container: str,
    stdin: bool,
    tty: bool,
    transport: str,
) -> int:
    """Run a command in a container.

    TARGET is a pod, or a workload such as deployment/NAME for one of its running pods. The exit
    code is the exit code of the command.
    """
    from kvestigate.inspection.execute import ExecOptions

    if tty and not stdin:
        raise UsageError("--tty needs --stdin", hint="write -it")
    if tty and not sys.stdin.isatty():
        click.echo("standard input is not a terminal: the command runs without one", err=True)
        tty = False
    wanted = ExecOptions(target, words, container, stdin, tty)
    if transport == "kubectl":
        return await _with_kubectl(run.options, wanted)
    from kvestigate.cli.attached import run_attached
    from kvestigate.inspection.execute import session

    async with session(run.context().access, wanted) as running:
        return await run_attached(running, stdin=stdin, tty=tty)


async def _with_kubectl(options: GlobalOptions, wanted: ExecOptions) -> int:
    import asyncio

    argv = kubectl_arguments(options, wanted)
    try:
        process = await asyncio.create_subprocess_exec(*argv)
    except FileNotFoundError:
        raise UsageError(
            "--transport kubectl: kubectl is not on the PATH",
            hint="omit --transport: ws needs no other program",
        ) from None
    return await process.wait()


def kubectl_arguments(options: GlobalOptions, wanted: ExecOptions) -> list[str]:
    """The equivalent kubectl command line."""
    flags = (
        ("--kubeconfig", options.kubeconfig),
        ("--context", options.context),
        ("--namespace", options.namespace),
        ("--as", options.as_user),
        ("--as-uid", options.as_uid),
        *(("--as-group", group) for group in options.as_groups),
    )
    argv = ["kubectl", *(f"{flag}={value}" for flag, value in flags if value), "exec"]
    argv += ["--stdin"] * wanted.stdin + ["--tty"] * wanted.tty
    if wanted.container:
        argv.append(f"--container={wanted.container}")
    return [*argv, wanted.target, "--", *wanted.command]
