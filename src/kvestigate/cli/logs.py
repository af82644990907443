"""`kvestigate logs`."""

from __future__ import annotations

import math
import sys

import click

from kvestigate.cli.command import operation_command
from kvestigate.cli.parameters import duration, whole_number
from kvestigate.cli.run import Run
from kvestigate.errors import UsageError


@operation_command(
    "logs",
    examples=(
        "kvestigate logs web-0 -n shop",
        "kvestigate logs web-0 -f --tail 500",
        "kvestigate logs deployment/web --since 10m",
    ),
)
@click.argument("target")
@click.option("-c", "--container", default="", metavar="NAME", help="Container whose log to show.")
@click.option("--all-containers", is_flag=True, help="All containers of each pod.")
@click.option("-f", "--follow", is_flag=True, help="Show new lines until Ctrl-C.")
@click.option(
    "--tail",
    type=whole_number(0, 10**9),
    metavar="LINES",
    help="Only the last lines of each container.",
)
@click.option(
    "--since", type=duration, metavar="TIME", help="Only lines of the last TIME: 10m, 2h."
)
@click.option(
    "-p", "--previous", is_flag=True, help="Show the log of the run before the last restart."
)
@click.option("--timestamps", is_flag=True, help="Start each line with its time.")
async def logs(
    run: Run,
    target: str,
    container: str,
    all_containers: bool,
    follow: bool,
    tail: int | None,
    since: float | None,
    previous: bool,
    timestamps: bool,
) -> None:
    """Show the log of a pod, or of all pods of a workload.

    TARGET is a pod, or deployment/NAME, statefulset/NAME, job/NAME, service/NAME. With several
    containers, each line starts with [pod/container].
    """
    from kvestigate.inspection.logs import LogsOptions, streaming

    if container and all_containers:
        raise UsageError("--container and --all-containers cannot be combined")
    wanted = LogsOptions(
        target=target,
        container=container,
        all_containers=all_containers,
        follow=follow,
        previous=previous,
        timestamps=timestamps,
        tail=tail,
        since_seconds=None if since is None else max(math.ceil(since), 1),
    )
    if run.options.output in ("json", "yaml"):
        await run(wanted)
        return
    async with streaming(run.context().access, wanted) as stream:
        several = len(stream.sources) > 1
        if not stream.sources:
            click.echo(f"{target} has no pods", err=True)
        for pod in stream.unplaced:
            hint = f"`kvestigate describe pod {pod}` shows why"
            click.echo(f"pod {pod} is not scheduled and has no log; {hint}", err=True)
        async for line in stream:
            prefix = f"[{line.source.pod}/{line.source.container}] " if several else ""
            sys.stdout.write(f"{prefix}{line.text}\n")
            if follow:
                sys.stdout.flush()
