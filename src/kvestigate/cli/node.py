"""`kvestigate node`: cordon, uncordon, drain and clear nodes."""

from __future__ import annotations

from dataclasses import replace

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.evict import eviction_options, report
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit


@group("node")
def node() -> None:
    """Cordon, uncordon and drain nodes."""


@command(
    "cordon",
    into=node,
    examples=("kvestigate node cordon gpu-node-7 --i-understand-this-modifies-cluster",),
)
@click.argument("name", metavar="NODE")
@writes(Consequence.MODIFIES_CLUSTER)
async def cordon(options: GlobalOptions, name: str, confirmation: Confirmation) -> None:
    """Mark NODE unschedulable; its pods stay.

    `uncordon` undoes it, so --apply is not needed.
    """
    await toggle(options, name, True, confirmation)


@command(
    "uncordon",
    into=node,
    examples=("kvestigate node uncordon gpu-node-7 --i-understand-this-modifies-cluster",),
)
@click.argument("name", metavar="NODE")
@writes(Consequence.MODIFIES_CLUSTER)
async def uncordon(options: GlobalOptions, name: str, confirmation: Confirmation) -> None:
    """Mark NODE schedulable again.

    `cordon` undoes it, so --apply is not needed.
    """
    await toggle(options, name, False, confirmation)


@command(
    "drain",
    into=node,
    examples=(
        "kvestigate node drain gpu-node-7",
        "kvestigate node drain gpu-node-7 --apply --i-understand-this-disrupts-workloads",
    ),
)
@click.argument("name", metavar="NODE")
@eviction_options
@writes(Consequence.DISRUPTS_WORKLOADS)
async def drain(
    options: GlobalOptions,
    name: str,
    include_system: bool,
    grace_period: int | None,
    timeout: float,
    confirmation: Confirmation,
) -> int:
    """Cordon NODE and evict its pods.

    Pods of DaemonSets and system namespaces, static, terminating and completed pods stay. Pods
    that a PodDisruptionBudget protects are tried again until --timeout. Exit code 6 if a budget
    still blocks a pod then, 7 if a pod has not terminated.
    """
    from kvestigate.nodeops.evict import EvictOptions
    from kvestigate.nodeops.evict import drain as collect

    wanted = EvictOptions(
        node=name, include_system=include_system, grace_seconds=grace_period, timeout=timeout
    )
    return await report(options, collect, wanted, confirmation)


@command(
    "clear",
    into=node,
    examples=(
        "kvestigate node clear gpu-node-7",
        "kvestigate node clear gpu-node-7 --apply --i-understand-this-disrupts-workloads",
    ),
)
@click.argument("name", metavar="NODE")
@eviction_options
@writes(Consequence.DISRUPTS_WORKLOADS)
async def clear(
    options: GlobalOptions,
    name: str,
    include_system: bool,
    grace_period: int | None,
    timeout: float,
    confirmation: Confirmation,
) -> int:
    """Evict the pods of NODE; NODE stays schedulable.

    The same pods stay as with `drain`, and the exit codes are the same.
    """
    from kvestigate.nodeops.evict import EvictOptions
    from kvestigate.nodeops.evict import clear as collect

    wanted = EvictOptions(
        node=name, include_system=include_system, grace_seconds=grace_period, timeout=timeout
    )
    return await report(options, collect, wanted, confirmation)


async def toggle(
    options: GlobalOptions, name: str, wanted: bool, confirmation: Confirmation
) -> None:
    from kvestigate.nodeops.cordon import CordonOptions, cordoning_blocks
    from kvestigate.nodeops.cordon import cordon as close
    from kvestigate.nodeops.cordon import uncordon as open_again

    act = close if wanted else open_again
    access = access_of(options)
    result = await act(access, CordonOptions(name, apply=confirmation.understood))
    emit(options, result, cordoning_blocks)
    if result.before != result.after:
        replace(confirmation, apply=True).require()
