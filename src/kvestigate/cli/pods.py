"""`kvestigate pods`."""

from __future__ import annotations

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.progress import counting


@command(
    "pods",
    examples=(
        "kvestigate pods",
        "kvestigate pods -n shop -l app=web",
        "kvestigate pods -o wide",
    ),
)
@click.option(
    "-l", "--selector", default="", metavar="LABELS", help="Only pods with these labels: app=web."
)
@click.option(
    "-A",
    "--all-namespaces",
    is_flag=True,
    help="Pods of all namespaces, also with -n; without -n these are meant anyway.",
)
async def pods(options: GlobalOptions, selector: str, all_namespaces: bool) -> None:
    """List pods, of one namespace with -n, else of all."""
    from kvestigate.inspection.lists import PodsOptions, list_pods, pods_blocks
    from kvestigate.kube.selectors import parse_labels

    parse_labels(selector)  # here a mistake is shown by the character
    wanted = PodsOptions("" if all_namespaces else options.namespace, selector)
    with counting() as progress:
        found = await list_pods(access_of(options), wanted, progress)
    emit(options, found, pods_blocks)
