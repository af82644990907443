"""A gateway that is killed, again and again, while agents make and remove workspaces.

`python -m tests.attacks.hosts.crashes 200` does it 200 times, and prints what came of it. After
each time the hosts are compared with the ledger and with the audit log, before anybody has had the
chance to put something right.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import random
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvestigate.cybernet.ledger import Book
from kvestigate.render.encode import to_yaml
from kvestigate_client import CybernetClient
from kvestigate_client.gateway import CybernetError
from tests.cybernet.conftest import TOKENS, changed
from tests.hosts_cluster import HostsCluster

ROOT = "/opt/kvestigate-workspaces"
NODES = ("node-1", "node-2")
MOST, MOST_OF_ONE, MOST_GPUS = 6, 4, 6
NAMES = tuple(f"agent-w{number}" for number in range(10))
_LONGEST_START = 60.0
"""Seconds until an agent has got something done, on a machine that is busy."""

SPACE = {
    "operations.allow": [f"workspace.{it}" for it in ("create", "sync", "run", "destroy", "ps")],
    "constraints.hosts": {},
    "quotas": {
        "max_active_workspaces_per_identity": MOST_OF_ONE,
        "max_total_active_workspaces": MOST,
        "max_total_active_gpu": MOST_GPUS,
    },
}

# What is left of a workspace, however much: its marker, its directory or its mount.
_LEFT = f"""
ls {ROOT}/.state 2>/dev/null | sed -n 's/\\.json$//p'
ls {ROOT} 2>/dev/null || :
sed -n 's|^[^ ]* {ROOT}/\\([^/ ]*\\).* tmpfs .*|\\1|p' /proc/mounts
"""


@dataclass
class Tally:
    rounds: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    """Operation -> how often it was carried out."""
    refused: Counter[str] = field(default_factory=Counter)
    """Why -> how often."""
    broken_off: int = 0
    """Requests whose answer never came."""
    unknown: list[str] = field(default_factory=list)
    """On a host, and not in the ledger."""
    exceeded: list[str] = field(default_factory=list)
    unrecorded: list[str] = field(default_factory=list)
    """On a host, and nobody wrote down that it was about to be made."""

    def __str__(self) -> str:
        done = ", ".join(f"{count} {name}" for name, count in sorted(self.answered.items()))
        return (
            f"{self.rounds} times killed; carried out: {done}; broken off: {self.broken_off}\n"
            f"not in the ledger: {len(self.unknown)}, over a quota: {len(self.exceeded)}, "
            f"not recorded: {len(self.unrecorded)}"
        )


class Siege:
    """One cyberspace, and agents that do not stop asking."""

    def __init__(self, cluster: HostsCluster, home: Path) -> None:
        self.cluster = cluster
        self.audit = home / "audit.jsonl"
        self.config = home / "space.yaml"
        document = changed("audit.path", str(self.audit))
        for path, value in SPACE.items():
            document = changed(path, value, document)
        self.config.write_text(to_yaml(document))
        self.book = Book(cluster.access(), "default", document["metadata"]["name"])
        self.tally = Tally()

    def round(self, seconds: float) -> None:
        command = [sys.executable, "-m", "kvestigate", "cybernet", "serve"]
        served = subprocess.Popen(
            [*command, "--config", str(self.config)],
            env=self.cluster.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert served.stdout is not None
        url = served.stdout.readline().split()[-1]
        over, at_work = threading.Event(), threading.Event()
        agents = [
            threading.Thread(target=self._agent, args=(url, identity, over, at_work))
            for identity in TOKENS
            for _ in range(3)
        ]
        for agent in agents:
            agent.start()
        at_work.wait(_LONGEST_START)
        time.sleep(seconds)  # how long it is let live is what this is about
        served.kill()
        served.wait()
        over.set()
        for agent in agents:
            agent.join()
        self.tally.rounds += 1
        self._compare()

    def _agent(
        self, url: str, identity: str, over: threading.Event, at_work: threading.Event
    ) -> None:
        client = CybernetClient(url, TOKENS[identity], timeout=60, patience=0)
        while not over.is_set():
            name = random.choice(NAMES)
            operation = random.choice(("create", "create", "create", "sync", "run", "destroy"))
            try:
                client.call(f"workspace.{operation}", _parameters(operation, name))
                self.tally.answered[operation] += 1
                at_work.set()
            except CybernetError as refused:
                if "gave no answer" in refused.message:
                    self.tally.broken_off += 1
                    return
                self.tally.refused[refused.message] += 1

    def _compare(self) -> None:
        there = {
            (node, name) for node in NODES for name in self.cluster.on_host(_LEFT, node).split()
        }
        entries = asyncio.run(self._entries())
        begun = self._begun()
        where = f"round {self.tally.rounds}"
        self.tally.unknown += [f"{where}: {it}" for it in sorted(there - entries.keys())]
        self.tally.unrecorded += [f"{where}: {it}" for it in sorted(there - begun)]
        if len(there) > MOST:
            self.tally.exceeded.append(f"{where}: {len(there)} workspaces")
        owners = Counter(entry.owner for entry in entries.values())
        if owners and max(owners.values()) > MOST_OF_ONE:
            self.tally.exceeded.append(f"{where}: {owners}")

    async def _entries(self) -> dict[tuple[str, str], Any]:
        async with self.book.opened() as page:
            return await page.read() or {}

    def _begun(self) -> set[tuple[str, str]]:
        """The workspaces that somebody is on record as having been about to make."""
        found = set()
        for line in self.audit.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # cut off with the one who wrote it
                record = json.loads(line)
                if record["operation"] == "workspace.create" and record["stage"] == "intent":
                    wanted = record["parameters"]["workspace"]
                    found.add((wanted["node"], wanted["name"]))
        return found


def _parameters(operation: str, name: str) -> dict[str, Any]:
    node = NODES[int(name[-1]) % len(NODES)]
    gpu = {"cordon_node": False, "reserve": int(name[-1]) % 3}
    storage = {"mode": random.choice(("all-tmpfs", "hybrid")), "tmpfs_size": "4Mi"}
    found: dict[str, Any] = {
        "workspace": {"name": name, "node": node, "storage": storage, "gpu": gpu}
    }
    if operation == "run":
        found |= {"tag": f"t{random.randrange(9)}", "command": ["sleep", "1"]}
    elif operation == "sync":
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            entry = tarfile.TarInfo("file")
            entry.size = 1000
            archive.addfile(entry, io.BytesIO(bytes(1000)))
        found["archive"] = base64.b64encode(packed.getvalue()).decode()
    return found


def main(rounds: int) -> int:
    with tempfile.TemporaryDirectory() as home:
        cluster = HostsCluster(Path(home), nodes=len(NODES))
        try:
            siege = Siege(cluster, Path(home))
            for number in range(rounds):
                siege.round(random.uniform(0.5, 5.0))
                if number % 10 == 9:
                    print(f"round {number + 1}: {siege.tally}", flush=True)
        finally:
            cluster.close()
    print(siege.tally)
    wrong = [*siege.tally.unknown, *siege.tally.exceeded, *siege.tally.unrecorded]
    print("\n".join(wrong[:20]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
