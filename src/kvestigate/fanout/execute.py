"""`fanout exec`: one command on every target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from kvestigate.client.api import Api
from kvestigate.fanout.parallel import AT_MOST, SECONDS, DryRun, MaxParallel, Timeout, fan_out
from kvestigate.fanout.resolve import aimed
from kvestigate.fanout.results import Outcome, Ran, TargetAddress
from kvestigate.fanout.targets import Target, TargetOptions, Targets
from kvestigate.node_access.remote import Output, Remote, TookTooLong
from kvestigate.operation import GROUP, Context, param

_KEPT = 256 * 1024
"""Bytes kept of stdout and of stderr of each target without --full."""


@dataclass(frozen=True, slots=True)
class ExecOptions:
    targets: Annotated[TargetOptions, GROUP]
    command: Annotated[
        tuple[str, ...],
        param("The program and its arguments.", argument=True, metavar="-- COMMAND..."),
    ]
    timeout: Timeout = SECONDS
    max_parallel: MaxParallel = AT_MOST
    full: Annotated[bool, param("Show the whole output.")] = False
    dry_run: DryRun = False


@dataclass(frozen=True, slots=True)
class Executed:
    command: tuple[str, ...]
    results: tuple[Ran, ...]


async def execute(context: Context, options: ExecOptions) -> Executed:
    async with aimed(context, options.targets) as (api, targets):
        if options.dry_run:
            return Executed(options.command, planned(targets, options.command))
        results = await fan_out(
            targets,
            lambda target: _run(api, target, options),
            lambda place, outcome, error: Ran(place, outcome, error=error),
            at_most=options.max_parallel,
            watcher=context.progress,
        )
    return Executed(options.command, results)


def planned(targets: Targets, command: tuple[str, ...]) -> tuple[Ran, ...]:
    """PURE. The commands that would run."""
    return (
        *(
            Ran(TargetAddress.of(target), Outcome.PLANNED, target.argv(command))
            for target in targets.found
        ),
        *(
            Ran(TargetAddress.of(target), Outcome.UNREACHABLE, error=target.reason)
            for target in targets.unreachable
        ),
    )


def remote(api: Api, target: Target) -> Remote:
    return Remote(
        api,
        name=target.name,
        namespace=target.namespace,
        pod=target.pod,
        container=target.container,
        wrapper=target.wrapper,
    )


async def _run(api: Api, target: Target, options: ExecOptions) -> Ran:
    output = Output() if options.full else Output(_KEPT)
    place, argv = TargetAddress.of(target), target.argv(options.command)
    try:
        done = await remote(api, target).run(
            options.command, timeout=options.timeout, output=output
        )
        outcome = Outcome.FAILED if done.exit_code else Outcome.OK
        ran = Ran(place, outcome, argv, done.exit_code)
    except TookTooLong as late:
        ran = Ran(place, Outcome.TIMEOUT, argv, error=late.message.removeprefix(f"{place.name}: "))
    return replace(
        ran,
        stdout=output.stdout.decode("utf-8", "replace"),
        stderr=output.stderr.decode("utf-8", "replace"),
        truncated=output.truncated,
    )
