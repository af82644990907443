"""What the commands of `fanout` have in common: which targets, how many at once, how long."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.parameters import duration, whole_number
from kvestigate.node_access.model import NodeAccess


def _seconds(value: str) -> float:
    seconds = duration(value)
    if not seconds:
        raise click.BadParameter("no command ends in no time; write 60 or 2m")
    return seconds


_SELECTION = (
    click.option(
        "--target",
        type=click.Choice(["nodes", "pods", "deployment"]),
        required=True,
        help="The hosts of nodes, pods of a namespace (-n), or those of a Deployment.",
    ),
    click.option(
        "--node", "nodes", multiple=True, metavar="NODE", help="Only this node; repeatable."
    ),
    click.option(
        "--exclude-node",
        "exclude_nodes",
        multiple=True,
        metavar="NODE",
        help="Leave this node out; repeatable.",
    ),
    click.option(
        "-l", "--selector", default="", metavar="SELECTOR", help="Only pods with these labels."
    ),
    click.option("--pod", "pods", multiple=True, metavar="POD", help="Only this pod; repeatable."),
    click.option(
        "--deployment", default="", metavar="NAME", help="Deployment whose pods are meant."
    ),
    click.option("-c", "--container", default="", metavar="NAME", help="Container of each pod."),
    through_daemon_set,
)

_PACE = (
    click.option(
        "--max-parallel",
        type=whole_number(1, 1000),
        default="8",
        show_default=True,
        metavar="COUNT",
        help="Targets at a time.",
    ),
    click.option(
        "--timeout",
        type=_seconds,
        default="60",
        show_default=True,
        metavar="SECONDS",
        help="Time for each target; what takes longer is ended.",
    ),
)

dry_run_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--dry-run", is_flag=True, help="Only show what would be done where."
)


@dataclass(frozen=True, slots=True)
class Pace:
    max_parallel: int
    timeout: float


def aims(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select targets; the command is given one `aim` instead of them."""

    @functools.wraps(function)
    def call(
        *args: Any,
        target: str,
        nodes: tuple[str, ...],
        exclude_nodes: tuple[str, ...],
        selector: str,
        pods: tuple[str, ...],
        deployment: str,
        container: str,
        via: NodeAccess,
        **kwargs: Any,
    ) -> Any:
        from kvestigate.fanout.targets import TargetKind, TargetOptions

        aim = TargetOptions(
            target=TargetKind(target),
            nodes=nodes,
            exclude_nodes=exclude_nodes,
            selector=selector,
            pods=pods,
            deployment=deployment,
            container=container,
            node_access=via,
        )
        return function(*args, aim=aim, **kwargs)

    return _with(call, _SELECTION)


def paced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add how many targets at once and for how long; the command is given one `pace`."""

    @functools.wraps(function)
    def call(*args: Any, max_parallel: int, timeout: float, **kwargs: Any) -> Any:
        return function(*args, pace=Pace(max_parallel, timeout), **kwargs)

    return _with(call, _PACE)


def _with(
    function: Callable[..., Any], options: tuple[Callable[..., Any], ...]
) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function
