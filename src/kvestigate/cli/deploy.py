"""`kvestigate deploy`."""

from __future__ import annotations

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.parameters import duration
from kvestigate.cli.run import Run


@operation_command(
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
async def deploy(
    run: Run,
    manifests: tuple[str, ...],
    recursive: bool,
    force_conflicts: bool,
    timeout: float,
) -> int:
    """Apply manifests in the required order, and show the changes.

    MANIFEST is a file of YAML or JSON, a directory, or - for standard input. The server says
    of each object whether it is created, changed or left as it is, and which fields differ;
    only if it takes all of them is anything applied. Namespaces come first, then types,
    access, configuration, storage, services, workloads and the rest.

    Exits with 6 if another manager owns a field, with 1 if an object fails otherwise.
    """
    from kvestigate.manifests.deploy import DeployOptions
    from kvestigate.manifests.read import read

    wanted = DeployOptions(
        sources=read(manifests, recursive=recursive),
        namespace=run.options.namespace,
        force_conflicts=force_conflicts,
        timeout=timeout,
    )
    return run.operation.exit_code(await run(wanted))
