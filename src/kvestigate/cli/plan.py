"""`kvestigate plan`."""

from __future__ import annotations

from pathlib import Path

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.files import json_option, read_whole
from kvestigate.cli.parameters import whole_number
from kvestigate.cli.run import Run
from kvestigate.errors import InputError


@operation_command(
    "plan",
    examples=(
        "kvestigate plan --gpu 1 --replicas 12 --cpu 4 --memory 16Gi",
        "kvestigate plan --gpu 2 --replicas 4 --one-per-node",
        "kvestigate plan --gpu 1 --replicas 4 --label nvidia.com/gpu.family=hopper",
        "kvestigate plan -f deployment.yaml --exclude node-04 --json plan.json",
    ),
)
@click.option("--gpu", type=whole_number(0, 1024), metavar="COUNT", help="GPUs of each replica.")
@click.option("--cpu", default="", metavar="AMOUNT", help="CPU of each replica: 8, 500m.")
@click.option("--memory", default="", metavar="AMOUNT", help="Memory of each replica: 64Gi.")
@click.option(
    "--replicas",
    type=whole_number(1, 1_000_000),
    metavar="COUNT",
    help="Number of replicas; default 1, or the manifest's.",
)
@click.option("--one-per-node", is_flag=True, help="At most one replica on a node.")
@click.option("--single-node", is_flag=True, help="All replicas on the same node.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="SELECTOR",
    help="Only nodes with this label: key=value; repeatable.",
)
@click.option("--exclude", multiple=True, metavar="NODE", help="Do not use this node; repeatable.")
@click.option(
    "--strategy",
    default="",
    metavar="NAME",
    help="Show only this strategy: bestfit, spread or pack.",
)
@click.option(
    "-f",
    "--filename",
    default="",
    metavar="FILE",
    help="Manifest of the workload, `-` for standard input; options override it.",
)
@json_option
async def plan(
    run: Run,
    gpu: int | None,
    cpu: str,
    memory: str,
    replicas: int | None,
    one_per_node: bool,
    single_node: bool,
    labels: tuple[str, ...],
    exclude: tuple[str, ...],
    strategy: str,
    filename: str,
    json_path: Path | None,
) -> int:
    """Check whether a workload fits into the free capacity, and on which nodes.

    Free is what nodes have allocatable minus what pods request. Amounts are for one replica: for
    12 GPUs on any nodes write `--gpu 1 --replicas 12`. With a manifest, the plan uses its requests,
    node selector and affinity, tolerations, topology spread and pod (anti-)affinity; preferences
    are listed and ignored. Exit code 1 if not all replicas fit.
    """
    from kvestigate.planning.plan import PlanOptions

    wanted = PlanOptions(
        gpu=gpu,
        cpu=cpu,
        memory=memory,
        replicas=replicas,
        one_per_node=one_per_node,
        single_node=single_node,
        labels=labels,
        exclude=exclude,
        strategy=strategy,
        manifest=_text(filename) if filename else "",
        source=filename,
    )
    return run.operation.exit_code(await run(wanted, json_path=json_path))


def _text(filename: str) -> str:
    try:
        return read_whole(filename).decode()
    except UnicodeDecodeError as error:
        raise InputError("the file is not text in UTF-8", where=filename) from error
