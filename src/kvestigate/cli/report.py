"""`kvestigate report`."""

from __future__ import annotations

from pathlib import Path

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.files import json_option, keep_json
from kvestigate.cli.group import command, group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting


@group("report")
def report() -> None:
    """Run one report of the audit."""


@command("list", into=report, examples=("kvestigate report list", "kvestigate report list -o wide"))
def list_(options: GlobalOptions) -> None:
    """List the reports."""
    from kvestigate.reports.rendering import names_blocks
    from kvestigate.reports.run import names

    emit(options, names(), names_blocks)


@command(
    "run",
    into=report,
    examples=(
        "kvestigate report run nodes",
        "kvestigate report run gpu --json gpu-now.json",
        "kvestigate report run network -o yaml",
    ),
)
@click.argument("name")
@json_option
async def run(options: GlobalOptions, name: str, json_path: Path | None) -> None:
    """Run the report NAME: nodes, metrics, gpu, workloads, network or storage."""
    from kvestigate.reports.registry import find
    from kvestigate.reports.rendering import report_blocks
    from kvestigate.reports.run import RunOptions, collect

    chosen = RunOptions(
        find(name).name, options.namespace
    )  # a mistyped name fails before a cluster is read
    with counting() as progress:
        result = await collect(access_of(options), chosen, progress)
    emit(options, result, report_blocks)
    keep_json(json_path, result)
