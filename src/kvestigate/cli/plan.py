"""`kvestigate plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.derived import input_of, parameters
from kvestigate.cli.files import json_option, read_whole
from kvestigate.cli.run import Run
from kvestigate.errors import InputError
from kvestigate.planning.plan import PlanOptions


@operation_command(
    "plan",
    examples=(
        "kvestigate plan --gpu 1 --replicas 12 --cpu 4 --memory 16Gi",
        "kvestigate plan --gpu 2 --replicas 4 --one-per-node",
        "kvestigate plan --gpu 1 --replicas 4 --label nvidia.com/gpu.family=hopper",
        "kvestigate plan -f deployment.yaml --exclude node-04 --json plan.json",
    ),
)
@parameters(PlanOptions, without=("manifest", "source"))
@click.option(
    "-f",
    "--filename",
    default="",
    metavar="FILE",
    help="Manifest of the workload, `-` for standard input; options override it.",
)
@json_option
async def plan(run: Run, /, filename: str, json_path: Path | None, **values: Any) -> int:
    """Check whether a workload fits into the free capacity, and on which nodes.

    Free is what nodes have allocatable minus what pods request. Amounts are for one replica: for
    12 GPUs on any nodes write `--gpu 1 --replicas 12`. With a manifest, the plan uses its requests,
    node selector and affinity, tolerations, topology spread and pod (anti-)affinity; preferences
    are listed and ignored. Exit code 1 if not all replicas fit.
    """
    if filename:
        values |= {"manifest": _text(filename), "source": filename}
    wanted = input_of(run, values)
    return run.operation.code(wanted, await run(wanted, json_path=json_path))


def _text(filename: str) -> str:
    try:
        return read_whole(filename).decode()
    except UnicodeDecodeError as error:
        raise InputError("the file is not text in UTF-8", where=filename) from error
