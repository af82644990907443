"""`kvestigate debug`: the connection to the cluster."""

from __future__ import annotations

from pathlib import Path

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.files import json_option, keep_json
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import whole_number


@group("debug")
def debug() -> None:
    """Debug the connection to the cluster and its speed."""


@command(
    "context",
    into=debug,
    examples=(
        "kvestigate debug context",
        "kvestigate debug context --context staging --as jane",
        "kvestigate debug context -o json",
    ),
)
@json_option
async def context(options: GlobalOptions, json_path: Path | None) -> None:
    """Show which cluster is used, how you authenticate, and as whom the server sees you.

    If the server cannot be reached, the local part is still shown.
    """
    from kvestigate.debug.context import look
    from kvestigate.debug.rendering import context_blocks

    report, failure = await look(access_of(options))
    emit(options, report, context_blocks)
    keep_json(json_path, report)
    if failure is not None:
        raise failure


@command(
    "api",
    into=debug,
    examples=(
        "kvestigate debug api",
        "kvestigate debug api /readyz",
        "kvestigate debug api '/api/v1/nodes?limit=1' -o json",
    ),
)
@click.argument("path", default="/version")
async def api(options: GlobalOptions, path: str) -> None:
    """GET a path of the API server with your credentials; default /version."""
    from kvestigate.debug.api import RequestOptions, collect
    from kvestigate.debug.rendering import answer_blocks

    answer = await collect(access_of(options), RequestOptions(path))
    emit(options, answer, answer_blocks)
    failure = answer.failure()
    if failure is not None:
        raise failure


@command(
    "timing",
    into=debug,
    examples=(
        "kvestigate debug timing",
        "kvestigate debug timing --samples 20 --json timing.json",
    ),
)
@click.option(
    "--samples",
    type=whole_number(1, 1000),
    default=5,
    show_default=True,
    help="Number of calls of each kind.",
)
@json_option
async def timing(options: GlobalOptions, samples: int, json_path: Path | None) -> None:
    """Measure typical calls to find out what is slow.

    The first row is a call on a new connection, with name lookup, TCP, TLS and credentials. The
    others use an open connection.
    """
    from kvestigate.debug.rendering import timing_blocks
    from kvestigate.debug.timing import TimingOptions, collect

    report = await collect(access_of(options), TimingOptions(samples))
    emit(options, report, timing_blocks)
    keep_json(json_path, report)


@command(
    "exec-url",
    into=debug,
    examples=(
        "kvestigate debug exec-url web-0",
        "kvestigate debug exec-url web-0 -n shop -c sidecar",
    ),
)
@click.argument("pod")
@click.option("-c", "--container", default="", metavar="NAME", help="Container to run in.")
async def exec_url(options: GlobalOptions, pod: str, container: str) -> int:
    """Show the URLs of an exec into POD, and try the handshake.

    Tries v5.channel.k8s.io and v4.channel.k8s.io. If the server accepts, `true` runs in the
    container. Exit code 1 if neither is accepted.
    """
    from kvestigate.debug.exec_url import ExecUrlOptions, collect
    from kvestigate.debug.rendering import exec_url_blocks

    report = await collect(access_of(options), ExecUrlOptions(pod, container))
    emit(options, report, exec_url_blocks)
    return 0 if report.works else 1
