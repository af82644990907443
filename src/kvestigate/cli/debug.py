"""`kvestigate debug`: how we talk to the cluster."""

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
    """How are we talking to this cluster, and what is slow about it?"""


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
    """Show which cluster is used, how authentication is sent, and who the server sees.

    What is known without the server is shown even when it cannot be reached.
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
    """GET a path through our client, with our credentials; /version when none is given."""
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
    help="How often each call is made.",
)
@json_option
async def timing(options: GlobalOptions, samples: int, json_path: Path | None) -> None:
    """Time representative calls to find out what is slow.

    Each call is made on a kept connection; the first row is a call on a new one, with name
    lookup, TCP, TLS and credentials.
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
@click.option("-c", "--container", default="", metavar="NAME", help="Container to execute in.")
async def exec_url(options: GlobalOptions, pod: str, container: str) -> int:
    """Show the URLs of an exec into POD, and attempt the handshake.

    Offers v5.channel.k8s.io, then v4. Where the server agrees, `true` runs in the container.
    Exit code 1 when neither is accepted.
    """
    from kvestigate.debug.exec_url import ExecUrlOptions, collect
    from kvestigate.debug.rendering import exec_url_blocks

    report = await collect(access_of(options), ExecUrlOptions(pod, container))
    emit(options, report, exec_url_blocks)
    return 0 if report.works else 1
