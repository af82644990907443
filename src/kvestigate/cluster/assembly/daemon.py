"""The background process of a cluster: `python -m kvestigate.cluster.assembly.daemon DIR FD`."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from kvestigate.aio.loops import fast_loop, told_to_stop
from kvestigate.cluster.assembly.assemble import embedded_cluster
from kvestigate.cluster.assembly.directory import ClusterDirectory, Record
from kvestigate.errors import KvestigateError

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0
"""How often the state directory is looked for: without it, no command finds the cluster."""


async def run(cluster: ClusterDirectory, ready: int, is_held: Callable[[], bool]) -> None:
    """Be the cluster until SIGTERM or SIGINT, or until its directory is gone."""
    stopped = told_to_stop()
    shape = cluster.read().shape
    async with embedded_cluster(cluster, shape) as running:
        record = Record(running.shape, os.getpid(), running.url, running.host)
        cluster.write(record)
        os.write(ready, msgspec.json.encode(record) + b"\n")
        os.close(ready)
        _log.info("cluster %s is ready at %s", cluster.name, running.url)
        while not stopped.is_set() and is_held():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await stopped.wait()
        _log.info("cluster %s is stopping", cluster.name)


def main(directory: str, ready: str) -> int:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    os.chdir("/")  # hold on to no directory that somebody may want to unmount
    path = Path(directory)
    cluster = ClusterDirectory(path.parent, path.name)
    try:
        with cluster.held() as is_held, asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(run(cluster, int(ready), is_held))
    except KvestigateError as error:
        _log.error("%s", error.message)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
