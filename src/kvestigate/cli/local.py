"""`kvestigate up`, `down` and `status`: clusters on this machine."""

from __future__ import annotations

import os

import click

from kvestigate.cli.command import command
from kvestigate.cli.options import GlobalOptions
from kvestigate.cli.output import emit, emit_list
from kvestigate.cli.parameters import whole_number
from kvestigate.cli.progress import waiting

name_option = click.option(
    "--name", default="default", show_default=True, help="Name of the cluster."
)


@command(
    "up",
    examples=(
        "kvestigate up",
        "kvestigate up --name lab --nodes 5",
        "kvestigate up --name fleet --nodes 8 --gpus 8",
        "kvestigate up --name shop --scenario broken-app",
    ),
)
@name_option
@click.option("--nodes", type=whole_number(1, 5000), help="Number of nodes; a new cluster has 3.")
@click.option(
    "--host",
    type=click.Choice(["auto", "namespace", "directory", "simulated"]),
    help="How nodes run pods; auto picks the best that this machine supports.",
)
@click.option("--gpus", type=whole_number(0, 64), help="Simulated GPUs per node.")
@click.option(
    "--gpu-model",
    type=click.Choice(["A100", "B200", "H100", "H200", "L4", "L40S", "RTX6000", "T4", "V100"]),
    help="Model of the GPUs; a new cluster has H100.",
)
@click.option(
    "--scenario",
    "scenario_name",
    metavar="NAME|FILE",
    help="Create a new cluster from a scenario; see `kvestigate scenario list`.",
)
def up(
    options: GlobalOptions,
    name: str,
    nodes: int | None,
    host: str | None,
    gpus: int | None,
    gpu_model: str | None,
    scenario_name: str | None,
) -> None:
    """Start a Kubernetes cluster on this machine: pods run as processes.

    Needs no root, container images or virtual machine. Adds a context to your kubeconfig. A
    stopped cluster starts again with everything that was in it.
    """
    from msgspec import structs

    from kvestigate.cluster.assembly.clusters import up as start
    from kvestigate.cluster.assembly.directory import ClusterDirectory, Shape, clusters_directory
    from kvestigate.cluster.assembly.rendering import started_blocks
    from kvestigate.cluster.scenarios.library import find
    from kvestigate.errors import UsageError

    flags = {"nodes": nodes, "host": host, "gpus": gpus, "gpu_model": gpu_model}
    given = {key: value for key, value in flags.items() if value is not None}
    if scenario_name is not None and given:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in given)
        raise UsageError(f"--scenario defines the nodes: leave out {names}")
    scenario = find(scenario_name) if scenario_name is not None else None
    shape = None
    if given:
        cluster = ClusterDirectory(clusters_directory(os.environ), name)
        shape = structs.replace(cluster.read().shape if cluster.exists else Shape(), **given)
    with waiting(f'starting cluster "{name}"') as waited:
        started = start(os.environ, name, shape, scenario, waited)
    emit(options, started, started_blocks)


@command("down", examples=("kvestigate down", "kvestigate down --name lab --delete"))
@name_option
@click.option("--delete", is_flag=True, help="Delete the cluster and everything in it.")
def down(options: GlobalOptions, name: str, delete: bool) -> None:
    """Stop a cluster and its pods; objects and nodes' disks are kept for the next `up`."""
    from kvestigate.cluster.assembly.clusters import down as stop
    from kvestigate.cluster.assembly.rendering import stopped_blocks

    emit(options, stop(os.environ, name, delete=delete), stopped_blocks)


@command("status", examples=("kvestigate status", "kvestigate status -o json"))
def status(options: GlobalOptions) -> None:
    """List the clusters on this machine."""
    from kvestigate.cluster.assembly.clusters import status as look
    from kvestigate.cluster.assembly.rendering import status_blocks

    emit_list(options, "clusters", look(os.environ), status_blocks)
