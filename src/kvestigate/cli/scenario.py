"""`kvestigate scenario`: the scenarios that `up` can create clusters from."""

from __future__ import annotations

import click

from kvestigate.cli.command import command
from kvestigate.cli.group import group
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit, emit_list


@group("scenario")
def scenario() -> None:
    """Ready-made clusters, healthy and broken, to try commands on."""


@command("list", into=scenario, examples=("kvestigate scenario list",))
def list_(options: GlobalOptions) -> None:
    """List the scenarios that come with kvestigate."""
    from kvestigate.cluster.assembly.rendering import scenarios_blocks
    from kvestigate.cluster.scenarios.library import listed

    emit_list(options, "scenarios", listed(), scenarios_blocks)


@command(
    "show",
    into=scenario,
    examples=("kvestigate scenario show gpu-fleet", "kvestigate scenario show ./mine.yaml"),
)
@click.argument("name", metavar="NAME|FILE")
def show(options: GlobalOptions, name: str) -> None:
    """Validate a scenario and print it, as a start for your own."""
    from kvestigate.cluster.assembly.rendering import scenario_blocks
    from kvestigate.cluster.scenarios.library import checked, find

    source = find(name)
    checked(source)
    emit(options, source, scenario_blocks)
