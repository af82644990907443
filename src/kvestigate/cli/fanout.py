"""`kvestigate fanout manifest`, which prints YAML as it is; the other commands are derived."""

from __future__ import annotations

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.group import group
from kvestigate.cli.output import emit
from kvestigate.cli.run import Run


@group("fanout")
def fanout() -> None:
    """Run a command or copy a file on many nodes or pods at once."""


@operation_command(
    "fanout.manifest",
    into=fanout,
    examples=("kvestigate fanout manifest | kubectl apply -f -",),
)
async def manifest(run: Run) -> None:
    """Print the node-access DaemonSet, which gives access to the hosts of nodes.

    Its pods are privileged: everyone who may exec into them is root on the nodes.
    """
    from kvestigate.fanout.operations import ManifestOptions
    from kvestigate.kube.yaml_documents import load

    text = (await run.result(ManifestOptions())).text
    if run.options.output != "json":
        click.echo(text, nl=False)  # with its comments
        return
    [only] = load(text)
    emit(run.options, only.value, lambda _: ())
