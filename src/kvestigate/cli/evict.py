"""`kvestigate evict`, and what it shares with `node drain` and `node clear`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import duration, whole_number
from kvestigate.cli.progress import counting
from kvestigate.errors import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK, EXIT_TIMEOUT

if TYPE_CHECKING:
    from kvestigate.nodeops.evict import Evictions, EvictOptions

F = TypeVar("F")


def eviction_options(function: F) -> F:
    """Add the options that all commands that evict pods share."""
    options: tuple[Any, ...] = (
        click.option(
            "--timeout",
            type=duration,
            default="5m",
            show_default=True,
            metavar="DURATION",
            help="How long to wait for pods to terminate and for budgets.",
        ),
        click.option(
            "--grace-period",
            type=whole_number(0, 86_400),
            metavar="SECONDS",
            help="Grace period for pods to stop, instead of their own.",
        ),
        click.option(
            "--include-system", is_flag=True, help="Also evict pods of system namespaces."
        ),
    )
    decorated: Any = function
    for option in options:
        decorated = option(decorated)
    wrapped: F = decorated
    return wrapped


@command(
    "evict",
    examples=(
        "kvestigate evict --node gpu-node-7",
        "kvestigate evict -n batch-jobs --apply --i-understand-this-disrupts-workloads",
        "kvestigate evict -l app=stale-trainer -n research",
    ),
)
@click.option("--node", default="", metavar="NODE", help="Pods on this node.")
@click.option(
    "-l", "--selector", default="", metavar="SELECTOR", help="Only pods with these labels."
)
@eviction_options
@writes(Consequence.DISRUPTS_WORKLOADS)
async def evict(
    options: GlobalOptions,
    node: str,
    selector: str,
    include_system: bool,
    grace_period: int | None,
    timeout: float,
    confirmation: Confirmation,
) -> int:
    """Evict the pods of a node, a namespace or a selector.

    At least one of --node, --namespace and --selector is needed; a pod must match all that are
    given. Nodes stay schedulable. The same pods stay as with `node drain`, and the exit codes are
    the same.
    """
    from kvestigate.nodeops.evict import EvictOptions
    from kvestigate.nodeops.evict import evict as collect

    wanted = EvictOptions(
        node=node,
        namespace=options.namespace,
        selector=selector,
        include_system=include_system,
        grace_seconds=grace_period,
        timeout=timeout,
    )
    return await report(options, collect, wanted, confirmation)


async def report(
    options: GlobalOptions,
    act: Callable[..., Awaitable[Evictions]],
    wanted: EvictOptions,
    confirmation: Confirmation,
) -> int:
    """Evict, or show the plan; the exit code says whether all pods are gone."""
    from kvestigate.nodeops.evict import BLOCKED, GONE, LEAVING, UNASKED
    from kvestigate.nodeops.rendering import evictions_blocks

    confirmed = confirmation.apply and confirmation.understood
    with counting("waiting for") as progress:
        result = await act(access_of(options), replace(wanted, apply=confirmed), progress)
    emit(options, result, evictions_blocks)
    if not result.nothing_to_do:
        confirmation.require()
    if result.count(GONE) == len(result.pods):
        return EXIT_OK
    if result.count(LEAVING) or result.count(UNASKED):
        return EXIT_TIMEOUT
    return EXIT_CONFLICT if result.count(BLOCKED) else EXIT_FAILED
