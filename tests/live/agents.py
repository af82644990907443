"""Our nodes for somebody else's control plane: `python -m tests.live.agents CONFIG DIR NAME...`

Says `ready` when all are registered. Ends by SIGTERM, pods and all; SIGKILL leaves the pods.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

from kvestigate.client.access import AccessOptions, resolve
from kvestigate.client.connect import connect
from kvestigate.cluster.node.agent.fleet import Fleet
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.namespace import best_host


async def main(config: str, directory: str, names: list[str]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with connect(resolve(AccessOptions(kubeconfig=config), {}, None)) as api:
        nodes = [
            (NodeConfig(name), await best_host(Path(directory) / name, name, now=time.time))
            for name in names
        ]
        async with Fleet(api, nodes):
            print("ready", flush=True)
            await stop.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
