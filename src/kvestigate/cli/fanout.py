"""`kvestigate fanout`: one command or one file, on many nodes or pods."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvestigate.cli.aiming import Pace, aims, paced
from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence
from kvestigate.cli.files import json_option, keep_json
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.errors import EXIT_FAILED, EXIT_OK, InputError

if TYPE_CHECKING:
    from kvestigate.fanout.results import TargetResult
    from kvestigate.fanout.targets import TargetOptions


@group("fanout")
def fanout() -> None:
    """Run a command or copy a file on many nodes or pods at once."""


@command(
    "targets",
    into=fanout,
    examples=(
        "kvestigate fanout targets --target nodes",
        "kvestigate fanout targets --target pods -n shop -l app=web",
        "kvestigate fanout targets --target deployment --deployment web -n shop",
    ),
)
@aims
@json_option
async def targets(options: GlobalOptions, json_path: Path | None, aim: TargetOptions) -> None:
    """Show the nodes or pods that a fan-out selects; nothing is run."""
    from kvestigate.fanout.rendering import targets_blocks
    from kvestigate.fanout.resolve import collect

    result = await collect(access_of(options), aim)
    emit(options, result, targets_blocks)
    keep_json(json_path, result)


@command(
    "exec",
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
@click.option("--full", is_flag=True, help="Show the whole output.")
@json_option
async def exec_(
    options: GlobalOptions,
    words: tuple[str, ...],
    pace: Pace,
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
    from kvestigate.fanout.execute import ExecOptions, execute
    from kvestigate.fanout.rendering import executed_blocks

    wanted = ExecOptions(aim, words, pace.timeout, pace.max_parallel, full, pace.dry_run)
    async with watching() as watcher:
        result = await execute(access_of(options), wanted, watcher)
    emit(options, result, partial(executed_blocks, full=full))
    keep_json(json_path, result)
    return _code(result.results)


@command(
    "fetch",
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
@json_option
async def fetch(
    options: GlobalOptions,
    path: str,
    directory: Path,
    pace: Pace,
    json_path: Path | None,
    aim: TargetOptions,
) -> int:
    """Copy PATH of every target to DIR/TARGET/.

    PATH is an absolute path of a file or directory on the host or in the container. Files that
    were fetched before are replaced. Nothing is written outside DIR, whatever a target sends. Exit
    code 1 if any target failed or could not be reached.
    """
    from kvestigate.cli.watching import watching
    from kvestigate.fanout.fetch import FetchOptions
    from kvestigate.fanout.fetch import fetch as collect
    from kvestigate.fanout.rendering import fetched_blocks

    wanted = FetchOptions(aim, path, pace.timeout, pace.max_parallel, pace.dry_run)
    async with watching() as watcher:
        result = await collect(access_of(options), wanted, directory, watcher)
    emit(options, result, fetched_blocks)
    keep_json(json_path, result)
    return _code(result.results)


@command(
    "push",
    into=fanout,
    examples=(
        "kvestigate fanout push ./hosts.allow /etc/hosts.allow --target nodes --dry-run",
        "kvestigate fanout push ./hosts.allow /etc/hosts.allow --target nodes "
        f"{Consequence.WRITES_TO_HOSTS.flag}",
    ),
)
@click.argument("local", type=click.Path(path_type=Path))
@click.argument("path", metavar="REMOTE")
@aims
@paced
@click.option(
    Consequence.WRITES_TO_HOSTS.flag,
    "understood",
    is_flag=True,
    help="Write the files, instead of only showing the plan.",
)
@json_option
async def push(
    options: GlobalOptions,
    local: Path,
    path: str,
    pace: Pace,
    understood: bool,
    json_path: Path | None,
    aim: TargetOptions,
) -> int:
    """Write the file LOCAL to REMOTE on every target.

    Each target has either the old or the new file, never a part of it. An existing file keeps its
    owner and mode; a new file gets the mode of LOCAL. Exit code 1 if any target failed or could not
    be reached.
    """
    from kvestigate.cli.watching import watching
    from kvestigate.fanout.push import PushOptions
    from kvestigate.fanout.push import push as collect
    from kvestigate.fanout.rendering import pushed_blocks

    content, mode = _read(local)
    apply = understood and not pace.dry_run
    wanted = PushOptions(aim, content, path, mode, pace.timeout, pace.max_parallel, apply)
    async with watching() as watcher:
        result = await collect(access_of(options), wanted, watcher)
    emit(options, result, pushed_blocks)
    keep_json(json_path, result)
    if not pace.dry_run:
        Confirmation(Consequence.WRITES_TO_HOSTS, apply=True, understood=understood).require()
    return _code(result.results)


@command(
    "manifest",
    into=fanout,
    examples=("kvestigate fanout manifest | kubectl apply -f -",),
)
def manifest(options: GlobalOptions) -> None:
    """Print the node-access DaemonSet, which gives access to the hosts of nodes.

    Its pods are privileged: everyone who may exec into them is root on the nodes.
    """
    from kvestigate.node_access.reach import manifest as text

    if options.output != "json":
        click.echo(text(), nl=False)  # with its comments
        return
    from kvestigate.kube.yaml_documents import load

    [only] = load(text())
    emit(options, only.value, lambda _: ())


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


def _code(results: Sequence[TargetResult]) -> int:
    return EXIT_OK if all(result.outcome.good for result in results) else EXIT_FAILED
