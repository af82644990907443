"""The operations of `fanout`, as the catalog lists them. Operators only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kvestigate.errors import EXIT_FAILED, EXIT_OK
from kvestigate.fanout import execute, fetch, push, resolve
from kvestigate.fanout.rendering import (
    executed_blocks,
    fetched_blocks,
    pushed_blocks,
    targets_blocks,
)
from kvestigate.fanout.results import TargetResult
from kvestigate.fanout.targets import TargetKind, TargetOptions, Targets
from kvestigate.node_access.reach import manifest
from kvestigate.operation import (
    Consequence,
    Context,
    Effect,
    Operation,
    Reach,
    Touched,
    touches_nothing,
)
from kvestigate.render.blocks import text


class _Aimed(Protocol):
    @property
    def targets(self) -> TargetOptions: ...


class _Results(Protocol):
    @property
    def results(self) -> tuple[TargetResult, ...]: ...


def _of_targets(options: TargetOptions) -> Touched:
    on_nodes = options.target is TargetKind.NODES
    namespaces = (options.namespace,) if options.namespace else ()
    return Touched(options.nodes, on_nodes and not options.nodes, namespaces)


def _touches(options: _Aimed) -> Touched:
    return _of_targets(options.targets)


def _exit_code(done: _Results) -> int:
    return EXIT_OK if all(result.outcome.good for result in done.results) else EXIT_FAILED


@dataclass(frozen=True, slots=True)
class ManifestOptions:
    """`fanout manifest` has no options."""


@dataclass(frozen=True, slots=True)
class Manifest:
    text: str


async def _manifest(context: Context, options: ManifestOptions) -> Manifest:
    return Manifest(manifest())


TARGETS: Operation[TargetOptions, Targets] = Operation(
    name="fanout.targets",
    summary="Show which nodes or pods a fan-out would reach; nothing is run.",
    input=TargetOptions,
    output=Targets,
    effect=Effect.READ,
    touches=_of_targets,
    handler=resolve.collect,
    reaches=Reach.HOSTS,
    json_file=True,
    examples=(
        "kvestigate fanout targets --target nodes",
        "kvestigate fanout targets --target pods -n shop -l app=web",
        "kvestigate fanout targets --target deployment --deployment web -n shop",
    ),
    render=targets_blocks,
)
EXEC: Operation[execute.ExecOptions, execute.Executed] = Operation(
    name="fanout.exec",
    summary="Run a command on every selected node or pod, a few at a time.",
    description=(
        "On nodes the command runs on the host itself. stderr shows each target as it finishes; "
        "the output follows on stdout, sorted by name. Ctrl-C stops the command on all targets. "
        "Exit code 1 if any target failed or could not be reached."
    ),
    input=execute.ExecOptions,
    output=execute.Executed,
    effect=Effect.WRITE,
    touches=_touches,
    handler=execute.execute,
    reaches=Reach.HOSTS,
    follows=True,
    json_file=True,
    examples=(
        "kvestigate fanout exec --target nodes -- nvidia-smi",
        "kvestigate fanout exec --target nodes --node node-04 --timeout 20 -- df -h /",
        "kvestigate fanout exec --target pods -n shop -l app=web -- ps -ef",
        "kvestigate fanout exec --target deployment --deployment web -n shop --dry-run -- env",
    ),
    render_for=lambda options, done: executed_blocks(done, full=options.full),
    exit_code=_exit_code,
)
FETCH: Operation[fetch.FetchOptions, fetch.Fetched] = Operation(
    name="fanout.fetch",
    summary="Copy a path of every target to a local directory.",
    description=(
        "It is written to DIR/TARGET/. PATH is absolute, on the host or in the container. Files "
        "that were fetched before are replaced. Nothing is written outside DIR, whatever a target "
        "sends. Exit code 1 if any target failed or could not be reached."
    ),
    input=fetch.FetchOptions,
    output=fetch.Fetched,
    effect=Effect.READ,
    touches=_touches,
    handler=fetch.fetch,
    reaches=Reach.HOSTS,
    follows=True,
    json_file=True,
    examples=(
        "kvestigate fanout fetch /etc/hosts ./out --target nodes",
        "kvestigate fanout fetch /var/log ./logs --target nodes --node node-04",
        "kvestigate fanout fetch /app/config.yaml ./configs --target pods -n shop --pod web-0",
    ),
    render=fetched_blocks,
    exit_code=_exit_code,
)
PUSH: Operation[push.PushOptions, push.Pushed] = Operation(
    name="fanout.push",
    summary="Write a local file to a path of every target.",
    description=(
        "Each target has either the old or the new file, never a part of it. An existing file "
        "keeps its owner and mode; a new file gets the mode of LOCAL. Exit code 1 if any target "
        "failed or could not be reached."
    ),
    input=push.PushOptions,
    output=push.Pushed,
    effect=Effect.DESTROY,
    consequence=Consequence.WRITES_TO_HOSTS,
    needs_apply=False,
    touches=_touches,
    handler=push.push,
    reaches=Reach.HOSTS,
    follows=True,
    json_file=True,
    examples=(
        "kvestigate fanout push ./hosts.allow /etc/hosts.allow --target nodes --dry-run",
        "kvestigate fanout push ./hosts.allow /etc/hosts.allow --target nodes "
        "--i-understand-this-writes-to-hosts",
    ),
    render=pushed_blocks,
    exit_code=_exit_code,
)
MANIFEST: Operation[ManifestOptions, Manifest] = Operation(
    name="fanout.manifest",
    summary="Print the node-access DaemonSet, which gives access to the hosts of nodes.",
    input=ManifestOptions,
    output=Manifest,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_manifest,
    render=lambda manifest: [text(manifest.text)],
)
