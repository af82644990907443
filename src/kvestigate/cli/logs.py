"""`kvestigate logs`."""

from __future__ import annotations

import sys
from typing import Any

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.derived import input_of, parameters
from kvestigate.cli.output import emit_log
from kvestigate.cli.run import Run
from kvestigate.inspection.logs import LogsOptions, streaming


@operation_command(
    "logs",
    examples=(
        "kvestigate logs web-0 -n shop",
        "kvestigate logs web-0 -f --tail 500",
        "kvestigate logs deployment/web --since 10m",
    ),
)
@parameters(LogsOptions)
async def logs(run: Run, /, **values: Any) -> None:
    """Show the log of a pod, or of all pods of a workload.

    TARGET is a pod, or deployment/NAME, statefulset/NAME, job/NAME, service/NAME. With several
    containers, each line starts with [pod/container].
    """
    wanted = input_of(run, values)
    if run.options.output in ("json", "yaml"):
        await run(wanted)
        return
    async with streaming(run.context().access, wanted) as stream:
        several = len(stream.sources) > 1
        if not stream.sources:
            click.echo(f"{wanted.target} has no pods", err=True)
        for pod in stream.unplaced:
            hint = f"`kvestigate describe pod {pod}` shows why"
            click.echo(f"pod {pod} is not scheduled and has no log; {hint}", err=True)
        async for line in stream:
            prefix = f"[{line.source.pod}/{line.source.container}] " if several else ""
            emit_log(f"{prefix}{line.text}\n")
            if wanted.follow:
                sys.stdout.flush()
