"""`kvestigate pods`."""

from __future__ import annotations

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.run import Run


@operation_command(
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
async def pods(run: Run, selector: str, all_namespaces: bool) -> None:
    """List the pods of all namespaces, or of one with -n."""
    from kvestigate.inspection.lists import PodsOptions
    from kvestigate.kube.selectors import parse_labels

    parse_labels(selector)  # this error points at the character, the server's does not
    await run(PodsOptions("" if all_namespaces else run.options.namespace, selector))
