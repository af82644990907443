"""A cluster whose hosts can be reached: `kvestigate up`, with the node-access DaemonSet."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import yaml

from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.client.connect import connect
from kvestigate.node_access.reach import manifest, reach
from kvestigate.workspace.host import looking
from tests.bed import Bed, Objects


class HostsCluster:
    """Nodes `node-1`, `node-2` and so on, each a host of its own with GPUs."""

    def __init__(self, home: Path, *, nodes: int = 2, gpus: int = 8, host: str = "auto") -> None:
        self._nodes = nodes
        self.kubeconfig = home / "kubeconfig"
        self.environ = os.environ | {
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "KUBECONFIG": str(self.kubeconfig),
        }
        size = ("--nodes", str(nodes), "--gpus", str(gpus), "--host", host)
        self.run("up", "--name", "hosts", *size)
        try:
            asyncio.run(self._open())
        except BaseException:
            self.close()
            raise

    def access(self) -> Access:
        return resolve(AccessOptions(kubeconfig=str(self.kubeconfig)), {}, None)

    def run(self, *words: str) -> str:
        command = [sys.executable, "-m", "kvestigate", *words]
        return subprocess.check_output(command, env=self.environ, text=True, timeout=60)

    def on_host(self, script: str, node: str = "node-1") -> str:
        """What a script prints that root runs on the host of a node."""

        async def run() -> str:
            async with connect(self.access()) as api:
                done = await looking((await reach(api)).host(node)).script(script)
                assert done.exit_code == 0, done.stderr
                return done.stdout.decode()

        return asyncio.run(run())

    def restart(self) -> None:
        """`down` and `up`; then the hosts can be reached again."""
        self.run("down", "--name", "hosts")
        self.run("up", "--name", "hosts")
        asyncio.run(self._reopen())

    def close(self) -> None:
        self.run("down", "--name", "hosts", "--delete")

    async def _open(self) -> None:
        async with connect(self.access()) as api:
            bed = Bed(api)
            await bed.create("daemonsets", yaml.safe_load(manifest()))
            await bed.until("daemonsets", lambda found: _ready(found) == self._nodes)

    async def _reopen(self) -> None:
        async with connect(self.access()) as api:
            await Bed(api).until("pods", lambda pods: _restarted(pods) == self._nodes)


def _ready(found: Objects) -> int:
    status = found["direct-node-access"].get("status") or {}
    return int(status.get("numberReady") or 0)


def _restarted(pods: Objects) -> int:
    """How many of its pods run again, after those that ran before."""
    containers = (
        container
        for name, pod in pods.items()
        if name.startswith("direct-node-access")
        for container in pod["status"].get("containerStatuses", ())
    )
    return sum(container["ready"] and container["restartCount"] > 0 for container in containers)
