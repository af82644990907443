"""`kvestigate optimize`."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.files import json_option
from kvestigate.cli.group import group
from kvestigate.cli.node_access import through_daemon_set
from kvestigate.cli.parameters import duration, number, whole_number
from kvestigate.cli.run import Run
from kvestigate.errors import InputError
from kvestigate.node_access.model import NodeAccess

if TYPE_CHECKING:
    from kvestigate.optimize.collect import FleetSource
    from kvestigate.optimize.consolidation import Tunables

Decorated = Callable[..., Any]


@group("optimize")
def optimize() -> None:
    """Find idle and scattered GPUs, and move pods to free whole nodes."""


def source_options(function: Decorated) -> Decorated:
    """Add --audit and --live."""
    return _decorated(
        function,
        click.option("--live", is_flag=True, help="Read the allocated GPUs from the cluster."),
        click.option(
            "--audit",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Read the allocated GPUs from a file of `kvestigate audit --json FILE`.",
        ),
    )


def tunable_options(function: Decorated) -> Decorated:
    """Add the options of a plan; the command gets them as `tunables`."""
    return _decorated(
        _with_tunables(function),
        click.option(
            "--pin",
            "pins",
            multiple=True,
            metavar="NAMESPACE/PATTERN",
            help="Never move these pods; * matches anything; repeatable.",
        ),
        click.option(
            "--exclude-node",
            "exclude_nodes",
            multiple=True,
            metavar="NODE",
            help="Do not move pods from or to this node; repeatable.",
        ),
        click.option(
            "--exclude-namespace",
            "exclude_namespaces",
            multiple=True,
            metavar="NAME",
            help="Never move pods of this namespace; repeatable.",
        ),
        click.option(
            "--min-free-nodes",
            type=whole_number(0, 100_000),
            default="1",
            show_default=True,
            metavar="COUNT",
            help="Wanted number of empty nodes; reported, not enforced.",
        ),
        click.option(
            "--donor-max-util",
            type=number,
            default=0.3,
            show_default=True,
            metavar="SHARE",
            help="Empty nodes with a smaller share of allocated GPUs.",
        ),
    )


def _with_tunables(function: Decorated) -> Decorated:
    @functools.wraps(function)
    def call(
        *args: Any,
        donor_max_util: float,
        min_free_nodes: int,
        exclude_namespaces: tuple[str, ...],
        exclude_nodes: tuple[str, ...],
        pins: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        from kvestigate.optimize.consolidation import Tunables

        tunables = Tunables(donor_max_util, min_free_nodes, exclude_namespaces, exclude_nodes, pins)
        return function(*args, tunables=tunables, **kwargs)

    return call


def _decorated(function: Decorated, *options: Callable[[Decorated], Decorated]) -> Decorated:
    for option in options:
        function = option(function)
    return function


@operation_command(
    "optimize.analyze",
    into=optimize,
    examples=(
        "kvestigate optimize analyze --live",
        "kvestigate optimize analyze --audit cluster.audit.json",
    ),
)
@source_options
@json_option
async def analyze(run: Run, audit: Path | None, live: bool, json_path: Path | None) -> None:
    """Show how the free GPUs are spread over the nodes.

    Every number is shown with its definition. With --audit no cluster is needed.
    """
    from kvestigate.optimize.operations import AnalyzeOptions
    from kvestigate.optimize.rendering import analysis_blocks

    source = "--live" if audit is None else f"--audit {shlex.quote(str(audit))}"
    await run(
        AnalyzeOptions(_source(audit, live)),
        json_path=json_path,
        render=functools.partial(analysis_blocks, source=source),
    )


@operation_command(
    "optimize.plan",
    into=optimize,
    examples=(
        "kvestigate optimize plan --live",
        "kvestigate optimize plan --audit cluster.audit.json --min-free-nodes 2",
        "kvestigate optimize plan --live --donor-max-util 0.5 --pin 'research/sweep-*'",
    ),
)
@source_options
@tunable_options
@json_option
async def plan(
    run: Run,
    audit: Path | None,
    live: bool,
    tunables: Tunables,
    json_path: Path | None,
) -> None:
    """Show which pods to move so that nodes become empty.

    Pods of nodes below --donor-max-util move to other partial nodes: the largest pod first, each
    to the fitting node with the fewest free GPUs. Pods that fit nowhere are listed and stay.
    Nothing is changed.
    """
    from kvestigate.optimize.operations import PlanOptions

    await run(PlanOptions(_source(audit, live), tunables), json_path=json_path)


@operation_command(
    "optimize.probe-gpu",
    into=optimize,
    examples=(
        "kvestigate optimize probe-gpu --live",
        "kvestigate optimize probe-gpu --live --samples 5 --interval 2",
        "kvestigate optimize probe-gpu --audit cluster.audit.json --ghost-threshold 0.1",
    ),
)
@source_options
@click.option(
    "--ghost-threshold",
    type=number,
    default=0.05,
    show_default=True,
    metavar="SHARE",
    help="A node with allocated GPUs and a lower mean utilization is a ghost.",
)
@click.option(
    "--samples",
    type=whole_number(1, 10_000),
    default="1",
    show_default=True,
    metavar="COUNT",
    help="How often every GPU is read; use 3 to 5 to confirm ghosts.",
)
@click.option(
    "--interval",
    type=duration,
    default="1.0",
    show_default=True,
    metavar="DURATION",
    help="Time between samples; a number without a unit is seconds.",
)
@through_daemon_set
@json_option
async def probe_gpu(
    run: Run,
    audit: Path | None,
    live: bool,
    ghost_threshold: float,
    samples: int,
    interval: float,
    via: NodeAccess,
    json_path: Path | None,
) -> None:
    """Measure with nvidia-smi on every node how allocated GPUs are used.

    Shows every reading, the use of compute, memory and power, nodes that are ghosts (allocated but
    idle), the power that they waste, and an energy forecast. Changes nothing. nvidia-smi runs on
    the hosts through the node-access DaemonSet.
    """
    from kvestigate.optimize.probe import ProbeOptions

    wanted = ProbeOptions(
        source=_source(audit, live),
        ghost_threshold=ghost_threshold,
        samples=samples,
        interval=interval,
    )
    await run(wanted, via=via, json_path=json_path)


@operation_command(
    "optimize.apply",
    into=optimize,
    examples=(
        "kvestigate optimize apply --live --min-free-nodes 2",
        "kvestigate optimize apply --live --apply --i-understand-this-disrupts-workloads",
    ),
)
@source_options
@tunable_options
@click.option(
    "--wave-size",
    type=whole_number(1, 10_000),
    default="4",
    show_default=True,
    metavar="COUNT",
    help="Pods that are evicted at the same time.",
)
@click.option(
    "--grace-period",
    type=whole_number(0, 86_400),
    metavar="SECONDS",
    help="Grace period for pods to stop, instead of their own.",
)
@click.option(
    "--timeout",
    type=duration,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait in a wave for pods to terminate and for budgets.",
)
@json_option
async def apply(
    run: Run,
    audit: Path | None,
    live: bool,
    tunables: Tunables,
    wave_size: int,
    grace_period: int | None,
    timeout: float,
    json_path: Path | None,
) -> int:
    """Carry out a consolidation plan: cordon the donors, evict pods in waves.

    The plan is the one of `optimize plan`. A pod that is no longer on its donor, or that could not
    start on its target, is kept. PodDisruptionBudgets are respected. If a pod is not evicted, there
    is no further wave. Exit code 6 if pods are kept or blocked by a budget, 7 after --timeout.
    """
    from kvestigate.optimize.apply import ApplyOptions

    wanted = ApplyOptions(
        source=_source(audit, live),
        tunables=tunables,
        wave_size=wave_size,
        grace_seconds=grace_period,
        timeout=timeout,
    )
    return run.operation.exit_code(await run(wanted, json_path=json_path))


def _source(audit: Path | None, live: bool) -> FleetSource:
    from kvestigate.optimize.collect import FleetSource

    if audit is None:
        return FleetSource(live=live)
    try:
        return FleetSource(audit.read_text(encoding="utf-8"), live=live, name=str(audit))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise InputError(
            f"cannot be read: {reason}",
            where=str(audit),
            hint="create one with `kvestigate audit --json FILE`",
        ) from error
