"""`kvestigate deploy`."""

from __future__ import annotations

import click

from kvestigate.cli.cluster import access_of
from kvestigate.cli.confirm import Confirmation, Consequence, writes
from kvestigate.cli.group import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit
from kvestigate.cli.parameters import duration
from kvestigate.cli.progress import counting
from kvestigate.errors import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK


@command(
    "deploy",
    examples=(
        "kvestigate deploy app.yaml",
        "kvestigate deploy manifests/ -n web --apply --i-understand-this-modifies-cluster",
        "helm template my-chart | kvestigate deploy -",
    ),
)
@click.argument("manifests", nargs=-1, required=True, metavar="MANIFEST...")
@click.option("-R", "--recursive", is_flag=True, help="Also read subdirectories.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that other managers own.")
@click.option(
    "--timeout",
    type=duration,
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait for new types to be served.",
)
@writes(Consequence.MODIFIES_CLUSTER)
async def deploy(
    options: GlobalOptions,
    manifests: tuple[str, ...],
    recursive: bool,
    force_conflicts: bool,
    timeout: float,
    confirmation: Confirmation,
) -> int:
    """Apply manifests in the required order, and show the changes.

    MANIFEST is a file of YAML or JSON, a directory, or - for standard input. The server says
    of each object whether it is created, changed or left as it is, and which fields differ;
    only if it takes all of them is anything applied. Namespaces come first, then types,
    access, configuration, storage, services, workloads and the rest.

    Exits with 6 if another manager owns a field, with 1 if an object fails otherwise.
    """
    from kvestigate.manifests.deploy import DeployOptions
    from kvestigate.manifests.deploy import deploy as collect
    from kvestigate.manifests.model import Outcome
    from kvestigate.manifests.read import read
    from kvestigate.manifests.rendering import deployment_blocks

    wanted = DeployOptions(
        sources=read(manifests, recursive=recursive),
        namespace=options.namespace,
        force_conflicts=force_conflicts,
        timeout=timeout,
        apply=confirmation.apply and confirmation.understood,
    )
    with counting("deploying") as progress:
        result = await collect(access_of(options), wanted, progress)
    emit(options, result, deployment_blocks)
    if not result.failed:
        if any(it.outcome is not Outcome.UNCHANGED for it in result.objects):
            confirmation.require()
        return EXIT_OK
    bad = {it.outcome for it in result.objects if not it.outcome.good}
    return EXIT_CONFLICT if bad == {Outcome.CONFLICT} else EXIT_FAILED
