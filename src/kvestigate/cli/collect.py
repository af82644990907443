"""`kvestigate collect`, which is `k8s-collect` too: workloads as a stream of events."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvestigate.cli.cluster import resolved
from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.list_options import ListCommand
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.parameters import whole_number
from kvestigate.errors import EXIT_INTERRUPTED, EXIT_OK, InputError, UsageError

if TYPE_CHECKING:
    from kvestigate.client.access import Access
    from kvestigate.collect.run import CollectOptions, Outlet

F = TypeVar("F")

_SIZES = {"k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@group("collect")
def collect() -> None:
    """Stream workloads as normalised events, one a line."""


def _size(text: str) -> int:
    """Bytes from `500000`, `100Mi`, `1G`."""
    digits = text.rstrip("kKMGi")
    factor = _SIZES.get(text[len(digits) :], 1 if digits == text else 0)
    if not digits.isdecimal() or not int(digits) * factor:
        raise click.BadParameter(f"{text!r} is not a size; write 500k, 100Mi or 1G")
    return int(digits) * factor


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        import json

        from kvestigate.collect.model import schema

        click.echo(json.dumps(schema(), indent=2))
        context.exit()


def shared_options(function: F) -> F:
    """The options of both commands."""
    decorated: Any = function
    for option in reversed(
        (
            click.option(
                "--kind-path",
                "kind_paths",
                multiple=True,
                metavar="GROUP/VERSION/KIND:PATH",
                help="Another kind and the path to its pod templates; * is any key. Repeatable.",
            ),
            click.option(
                "--sidecar",
                "sidecars",
                multiple=True,
                metavar="NAME|IMAGE",
                help="Count containers of this name, or image with a slash, as sidecars, too.",
            ),
            click.option(
                "--schema",
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_schema,
                help="Print the JSON Schema of an event and exit.",
            ),
        )
    ):
        decorated = option(decorated)
    made: F = decorated
    return made


@command(
    "watch",
    into=collect,
    cls=ListCommand,
    examples=(
        "kvestigate collect watch --emit-initial",
        "kvestigate collect watch --kinds Deployment Pod --namespaces shop --output events.ndjson",
        "kvestigate collect watch --checkpoint state.db --post http://localhost:8000/infer",
    ),
)
@click.option(
    "--kinds",
    multiple=True,
    metavar="KIND...",
    default=("Deployment", "Job", "CronJob"),
    show_default=True,
    help="Kinds to watch; also Pod, StatefulSet, DaemonSet, ReplicaSet.",
)
@click.option(
    "--namespaces",
    multiple=True,
    metavar="NAME...",
    help="Namespaces to watch; all if none is given.",
)
@click.option("--emit-initial", is_flag=True, help="Emit existing objects first, then changes.")
@click.option("--emit-deletes", is_flag=True, help="Emit DELETED events, too.")
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Store the position in FILE, and continue there after a restart.",
)
@click.option(
    "--output",
    "output_path",
    metavar="PATH",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append the events to this file, too.",
)
@click.option(
    "--rotate-size",
    metavar="SIZE",
    type=_size,
    help="Rotate the --output file at this size (100Mi); five old ones are kept.",
)
@click.option(
    "--fsync",
    type=click.Choice(["never", "always"]),
    default="never",
    show_default=True,
    help="Whether lines in the --output file must survive a power failure.",
)
@click.option("--post", "post_url", metavar="URL", help="POST the events to this URL, too.")
@click.option(
    "--post-batch",
    metavar="N",
    type=whole_number(1, 10_000),
    default="1",
    show_default=True,
    help="Most events in a request; more than one are sent as an array.",
)
@click.option(
    "--post-queue",
    metavar="N",
    type=whole_number(1, 1_000_000),
    default="10000",
    show_default=True,
    help="Events kept while the URL fails; then the oldest are dropped and counted.",
)
@click.option("--post-gzip", is_flag=True, help="Compress the requests.")
@click.option(
    "--post-token-env", metavar="NAME", help="Variable with a bearer token for the requests."
)
@click.option("--nats", "nats_url", metavar="URL", help="Publish the events to NATS, too.")
@click.option(
    "--nats-subject",
    metavar="SUBJECT",
    default="k8s-collect",
    show_default=True,
    help="Subject of the events; a JetStream stream must accept it.",
)
@click.option("--nats-stream", metavar="NAME", help="Create this stream if it does not exist.")
@click.option("--nats-creds", metavar="PATH", help="Credentials file for the NATS server.")
@click.option(
    "--listen", metavar="HOST:PORT", help="Serve /healthz, /readyz and /metrics (Prometheus) here."
)
@click.option(
    "--ca-file", metavar="PATH", help="Authority to trust for the cluster; or K8S_CA_FILE."
)
@click.option(
    "--verify-ssl",
    type=click.Choice(["true", "false"]),
    help="Force verification of the cluster's certificate on or off.",
)
@click.option(
    "--suppress-tls-warnings",
    is_flag=True,
    help="Do not warn that the certificate is not verified.",
)
@shared_options
async def watch(options: GlobalOptions, /, **given: Any) -> int:
    """Watch a cluster and emit an event for each change of a workload.

    Events are lines of JSON on stdout. An id (uid@resourceVersion) tells repeats, which a
    restart may cause; with a checkpoint nothing is missing. A sink that fails stops no other.
    """
    import asyncio
    import signal

    from kvestigate.collect.run import collect as run

    access = _access(options, given)
    chosen = _collect_options(options, given)
    outlets = _outlets(given)
    if access.tls.insecure and not given["suppress_tls_warnings"]:
        _say("warning: the certificate of the cluster is not verified")
    stop = asyncio.Event()
    received: list[int] = []

    def stopped(number: int) -> None:
        received.append(number)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped, number)
    try:
        await run(access, chosen, outlets, stop, _say)
    except ExceptionGroup as failures:
        if failures.subgroup(BrokenPipeError):  # whoever read our output has seen enough
            raise BrokenPipeError from None
        raise
    finally:
        for outlet in outlets:
            await outlet.sink.aclose()
    return EXIT_INTERRUPTED if signal.SIGINT in received else EXIT_OK


@command(
    "from-file",
    into=collect,
    examples=(
        "kvestigate collect from-file deployment.yaml",
        "kvestigate collect from-file manifests/ 'charts/**/*.yaml' --strict",
        "helm template web ./chart | kvestigate collect from-file -",
    ),
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Fail if a document cannot be read.")
@shared_options
def from_file(
    options: GlobalOptions,
    paths: Sequence[str],
    strict: bool,
    kind_paths: Sequence[str],
    sidecars: Sequence[str],
) -> None:
    """Emit what manifests hold, without a cluster.

    PATH is a YAML or JSON file, a directory, a pattern, or - for stdin. Documents that cannot
    be read are reported with file and line on stderr, and the rest goes on.
    """
    from kvestigate.collect.documents import Problem, Reading
    from kvestigate.collect.kinds import parse_kind_path
    from kvestigate.collect.record import line
    from kvestigate.collect.sidecars import with_more

    reading = Reading(tuple(map(parse_kind_path, kind_paths)), with_more(sidecars))
    problems = emitted = 0
    for found in reading.records(paths):
        if isinstance(found, Problem):
            problems += 1
            _say(found.message)
        else:
            emitted += 1
            sys.stdout.buffer.write(line(found) + b"\n")
    if not emitted and not problems:
        _say("no workloads found; --kind-path adds other kinds that have pods")
    if problems and strict:
        raise InputError(
            f"{problems} {'document' if problems == 1 else 'documents'} could not be read",
            hint="the messages above name them; without --strict the other documents are enough",
        )


def _say(text: str) -> None:
    from kvestigate.render.blocks import printable

    click.echo(printable(text), err=True)


def _access(options: GlobalOptions, given: dict[str, Any]) -> Access:
    from msgspec.structs import replace

    from kvestigate.collect.access import authority, configured, verifying

    wanted = replace(options.access(), ca_file=authority(given["ca_file"]))
    verify = {"true": True, "false": False}.get(given["verify_ssl"] or "")
    with configured():
        return verifying(resolved(wanted), verify)


def _collect_options(options: GlobalOptions, given: dict[str, Any]) -> CollectOptions:
    from kvestigate.collect.kinds import chosen, parse_kind_path
    from kvestigate.collect.run import CollectOptions
    from kvestigate.collect.sidecars import with_more
    from kvestigate.collect.watching import Following

    listen = None
    if given["listen"]:
        host, colon, port = given["listen"].rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(
                f"--listen: {given['listen']!r} is not HOST:PORT", hint="write 127.0.0.1:9102"
            )
        listen = (host.removeprefix("[").removesuffix("]"), int(port))
    own = (options.namespace,) if options.namespace else ()
    return CollectOptions(
        kinds=chosen(given["kinds"], map(parse_kind_path, given["kind_paths"])),
        namespaces=tuple(given["namespaces"]) or own,
        following=Following(
            given["emit_initial"], given["emit_deletes"], with_more(given["sidecars"])
        ),
        checkpoint=given["checkpoint"],
        listen=listen,
    )


def _outlets(given: dict[str, Any]) -> list[Outlet]:
    from kvestigate.collect.run import Outlet
    from kvestigate.collect.sinks.files import FileSink, StdoutSink
    from kvestigate.collect.sinks.post import PostSink

    outlets = [Outlet(StdoutSink())]
    if path := given["output_path"]:
        rotate_size = given["rotate_size"] or 0
        file = FileSink(path, rotate_size=rotate_size, fsync=given["fsync"] == "always")
        outlets.append(Outlet(file))
    if url := given["post_url"]:
        token = ""
        if variable := given["post_token_env"]:
            token = os.environ.get(variable, "")
            if not token:
                raise UsageError(f"--post-token-env: the variable {variable} is not set")
        post = PostSink(url, environ=os.environ, token=token, compress=given["post_gzip"])
        outlets.append(Outlet(post, batch=given["post_batch"], capacity=given["post_queue"]))
    if url := given["nats_url"]:
        from kvestigate.collect.sinks.nats import NatsSink

        stream, credentials = given["nats_stream"] or "", given["nats_creds"] or ""
        nats = NatsSink(url, given["nats_subject"], stream=stream, credentials=credentials)
        outlets.append(Outlet(nats))
    return outlets
