"""`kvestigate fanout`: one command or one file, on many nodes or pods."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.aiming import Pace, aims, dry_run_option, paced
from kvestigate.cli.command import operation_command
from kvestigate.cli.files import json_option
from kvestigate.cli.group import group
from kvestigate.cli.output import emit
from kvestigate.cli.run import Run
from kvestigate.errors import InputError

if TYPE_CHECKING:
    from kvestigate.fanout.targets import TargetOptions


@group("fanout")
def fanout() -> None:
    """Run a command or copy a file on many nodes or pods at once."""


@operation_command(
    "fanout.targets",
    into=fanout,
    examples=(
        "kvestigate fanout targets --target nodes",
        "kvestigate fanout targets --target pods -n shop -l app=web",
        "kvestigate fanout targets --target deployment --deployment web -n shop",
    ),
)
@aims
@json_option
async def targets(run: Run, json_path: Path | None, aim: TargetOptions) -> None:
    """Show which nodes or pods a fan-out would reach; nothing is run."""
    await run(aim, json_path=json_path)


@operation_command(
    "fanout.exec",
    into=fanout,
    examples=(
        "kvestigate fanout exec --target nodes -- nvidia-smi",
        "kvestigate fanout exec --target nodes --node node-04 --timeout 20 -- df -h /",
        "kvestigate fanout exec --target pods -n shop -l app=web -- ps -ef",
        "kvestigate fanout exec --target deployment --deployment web -n shop --dry-run -- env",
    ),
)
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@aims
@paced
@dry_run_option
@click.option("--full", is_flag=True, help="Show the whole output.")
@json_option
async def exec_(
    run: Run,
    words: tuple[str, ...],
    pace: Pace,
    dry_run: bool,
    full: bool,
    json_path: Path | None,
    aim: TargetOptions,
) -> int:
    """Run a command on every selected node or pod, a few at a time.

    On nodes the command runs on the host itself. stderr shows each target as it finishes; the
    output follows on stdout, sorted by name. Ctrl-C stops the command on all targets. Exit code 1
    if any target failed or could not be reached.
    """
    from kvestigate.cli.watching import watching
    from kvestigate.fanout.execute import ExecOptions
    from kvestigate.fanout.rendering import executed_blocks

    wanted = ExecOptions(aim, words, pace.timeout, pace.max_parallel, full, dry_run)
    async with watching() as watcher:
        result = await run.result(wanted, progress=nullcontext(watcher))
    return run.shown(result, partial(executed_blocks, full=full), json_path)


@operation_command(
    "fanout.fetch",
    into=fanout,
    examples=(
        "kvestigate fanout fetch /etc/hosts ./out --target nodes",
        "kvestigate fanout fetch /var/log ./logs --target nodes --node node-04",
        "kvestigate fanout fetch /app/config.yaml ./configs --target pods -n shop --pod web-0",
    ),
)
@click.argument("path")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@aims
@paced
@dry_run_option
@json_option
async def fetch(
    run: Run,
    path: str,
    directory: Path,
    pace: Pace,
    dry_run: bool,
    json_path: Path | None,
    aim: TargetOptions,
) -> int:
    """Copy a path of every target to a local directory.

    It is written to DIR/TARGET/. PATH is absolute, on the host or in the container. Files that
    were fetched before are replaced. Nothing is written outside DIR, whatever a target sends. Exit
    code 1 if any target failed or could not be reached.
    """
    from kvestigate.cli.watching import watching
    from kvestigate.fanout.fetch import FetchOptions

    wanted = FetchOptions(aim, path, str(directory), pace.timeout, pace.max_parallel, dry_run)
    async with watching() as watcher:
        result = await run.result(wanted, progress=nullcontext(watcher))
    return run.shown(result, json_path=json_path)


@operation_command(
    "fanout.push",
    into=fanout,
    examples=(
        "kvestigate fanout push ./hosts.allow /etc/hosts.allow --target nodes --dry-run",
        "kvestigate fanout push ./hosts.allow /etc/hosts.allow --target nodes "
        "--i-understand-this-writes-to-hosts",
    ),
)
@click.argument("local", type=click.Path(path_type=Path))
@click.argument("path", metavar="REMOTE")
@aims
@paced
@json_option
async def push(
    run: Run,
    local: Path,
    path: str,
    pace: Pace,
    json_path: Path | None,
    aim: TargetOptions,
) -> int:
    """Write a local file to a path of every target.

    Each target has either the old or the new file, never a part of it. An existing file keeps its
    owner and mode; a new file gets the mode of LOCAL. Exit code 1 if any target failed or could not
    be reached.
    """
    from kvestigate.cli.watching import watching
    from kvestigate.fanout.push import PushOptions

    content, mode = _read(local)
    wanted = PushOptions(aim, content, path, mode, pace.timeout, pace.max_parallel)
    async with watching() as watcher:
        result = await run.result(wanted, progress=nullcontext(watcher))
    return run.shown(result, json_path=json_path)


@operation_command(
    "fanout.manifest",
    into=fanout,
    examples=("kvestigate fanout manifest | kubectl apply -f -",),
)
async def manifest(run: Run) -> None:
    """Print the node-access DaemonSet, which gives access to the hosts of nodes.

    Its pods are privileged: everyone who may exec into them is root on the nodes.
    """
    from kvestigate.fanout.operations import ManifestOptions
    from kvestigate.kube.yaml_documents import load

    text = (await run.result(ManifestOptions())).text
    if run.options.output != "json":
        click.echo(text, nl=False)  # with its comments
        return
    [only] = load(text)
    emit(run.options, only.value, lambda _: ())


def _read(path: Path) -> tuple[bytes, int]:
    try:
        return path.read_bytes(), path.stat().st_mode & 0o777
    except IsADirectoryError:
        raise InputError(
            "is a directory; only files can be pushed",
            where=str(path),
            hint="pack it: `tar -czf tree.tgz DIR`, push tree.tgz, unpack it with `fanout exec`",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=str(path), hint="check the path"
        ) from error
