"""One workspace with many GPUs of one node.

GPUS sets how many; KVESTIGATE_CYBERNET_URL and _TOKEN say where and who.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from kvestigate_client import CybernetClient, DistributedJob

HERE = Path(__file__).parent
URL = os.environ.get("KVESTIGATE_CYBERNET_URL", "http://localhost:8765")
GPUS = int(os.environ.get("GPUS", "6"))
TMPFS = os.environ.get("TMPFS", "64Gi")
POLL = float(os.environ.get("POLL_SECONDS", "5"))


def main() -> None:
    client = CybernetClient(URL, os.environ["KVESTIGATE_CYBERNET_TOKEN"])
    with (
        tempfile.TemporaryDirectory() as scratch,
        DistributedJob(client, prefix="finetune", shards=1) as job,
    ):
        [node] = job.discover_and_plan(gpu_per_shard=GPUS, strategy="most-free-capacity")
        job.provision(tmpfs_per_shard=TMPFS)
        job.sync_code(HERE / "code")
        job.run(["python3", "train.py"])
        job.wait_until_complete(poll_interval=POLL)
        [found] = job.fetch("checkpoints/last.json", scratch)
        checkpoint = json.loads((found / "last.json").read_text())
    print(f"trained on {len(set(checkpoint['devices']))} GPUs of {node}: {checkpoint['models'][0]}")


if __name__ == "__main__":
    main()
