"""One coordinator and several workers, each with a task of its own.

SHARDS, TASKS and COORDINATOR_PORT set the size; KVESTIGATE_CYBERNET_URL and _TOKEN say where and
who.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from kvestigate_client import CybernetClient, DistributedJob, ShardTask

HERE = Path(__file__).parent
URL = os.environ.get("KVESTIGATE_CYBERNET_URL", "http://localhost:8765")
SHARDS = int(os.environ.get("SHARDS", "4"))
TASKS = os.environ.get("TASKS", "1000")
PORT = os.environ.get("COORDINATOR_PORT", "29500")
POLL = float(os.environ.get("POLL_SECONDS", "5"))


def main() -> None:
    client = CybernetClient(URL, os.environ["KVESTIGATE_CYBERNET_TOKEN"])
    together = {"COORDINATOR_PORT": PORT, "TASKS": TASKS}
    with (
        tempfile.TemporaryDirectory() as scratch,
        DistributedJob(client, prefix="rendezvous", shards=SHARDS) as job,
    ):
        job.discover_and_plan(cpu_per_shard=0.1, mem_per_shard="32Mi")
        job.provision(tmpfs_per_shard="32Mi")
        job.sync_code(HERE / "code")
        job.run_tasks(
            [
                ShardTask(["python3", "coordinator.py"], {"ROLE": "coordinator", **together}, 0),
                *(
                    ShardTask(["python3", "worker.py"], {"ROLE": "worker", **together}, rank)
                    for rank in range(1, SHARDS)
                ),
            ]
        )
        job.wait_until_complete(poll_interval=POLL)
        [found] = job.fetch("checkpoints/total.json", scratch, ranks=[0])
        total = json.loads((found / "total.json").read_text())
    print(f"{total['tasks']} tasks on {SHARDS - 1} workers; the sum is {total['sum']}")


if __name__ == "__main__":
    main()
