"""`kvestigate demo`: a cluster, a job in it, and the findings of the audit."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from kvestigate.cli.command import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting, waiting

if TYPE_CHECKING:
    from kvestigate.cluster.assembly.clusters import Started
    from kvestigate.cluster.assembly.demo import Demonstration
    from kvestigate.health.audit import Audit
    from kvestigate.health.model import Finding
    from kvestigate.render.blocks import Block


@dataclass(frozen=True, slots=True)
class Demo:
    """Everything that the command shows, as JSON."""

    cluster: Started
    demonstration: Demonstration
    findings: tuple[Finding, ...]


@command("demo", examples=("kvestigate demo", "kvestigate demo --ui"))
@click.option("--ui", is_flag=True, help="Show the cluster in a browser in the end, until Ctrl-C.")
def demo(options: GlobalOptions, ui: bool) -> Coroutine[Any, Any, None]:
    """Start a simulated GPU cluster, run a job on every node, and show the audit.

    The cluster is named demo and keeps running; `kvestigate down --name demo --delete` deletes it.
    """
    from kvestigate.cluster.assembly.clusters import up
    from kvestigate.cluster.assembly.demo import NAME, SCENARIO
    from kvestigate.cluster.scenarios.library import find

    # Before there is a loop: in a thread of it, Ctrl-C would not reach the start.
    with waiting("starting a cluster of 8 nodes") as waited:
        started = up(os.environ, NAME, None, find(SCENARIO), waited)
    return _show(options, started, ui=ui)


async def _show(options: GlobalOptions, started: Started, *, ui: bool) -> None:
    from kvestigate.cli.cluster import access_of
    from kvestigate.client.connect import connect
    from kvestigate.cluster.assembly.demo import demonstrate
    from kvestigate.cluster.assembly.rendering import demonstration_blocks, started_blocks
    from kvestigate.health.audit import AuditOptions, collect
    from kvestigate.health.rendering import aimed

    as_text = options.output == "table"
    if as_text:
        emit(options, started, started_blocks)
    options = replace(options, context=started.context)
    access = access_of(options)
    async with connect(access) as api:
        with counting("running a job on every node"):
            seen = await demonstrate(api)
    if as_text:
        click.echo()
        emit(options, seen, demonstration_blocks)
    audit = await collect(access, AuditOptions())
    if as_text:
        click.echo()
        emit(options, aimed(audit, options.cluster_flags), _findings_blocks)
    else:
        emit(options, Demo(started, seen, audit.findings), lambda _: [])
    if ui:
        from kvestigate.cli.ui import show

        await show(options, browser=True, allow_writes=False)


def _findings_blocks(audit: Audit) -> Sequence[Block]:
    from kvestigate.cluster.assembly.rendering import farewell_blocks
    from kvestigate.health.rendering import finding_blocks
    from kvestigate.render.blocks import Tone, text

    head = text("what the audit says of it", Tone.STRONG)
    return [head, *finding_blocks(audit), *farewell_blocks()]
