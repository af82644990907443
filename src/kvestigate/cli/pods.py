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
    help="List the pods of all namespaces. This is the default without -n.",
)
async def pods(options: GlobalOptions, selector: str, all_namespaces: bool) -> None:
    """List the pods of all namespaces, or of one with -n."""
    from kvestigate.inspection.lists import PodsOptions, list_pods, pods_blocks
    from kvestigate.kube.selectors import parse_labels

    parse_labels(selector)  # this error points at the character, the server's does not
    wanted = PodsOptions("" if all_namespaces else options.namespace, selector)
    with counting() as progress:
        result = await list_pods(access_of(options), wanted, progress)
    emit(options, result, pods_blocks)
