"""Counts words on as many nodes as there are chunks, and adds up what comes back.

SHARDS and LINES set the size; KVESTIGATE_CYBERNET_URL and _TOKEN say where and who.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

from make_inputs import make

from kvestigate_client import CybernetClient, DistributedJob

HERE = Path(__file__).parent
URL = os.environ.get("KVESTIGATE_CYBERNET_URL", "http://localhost:8765")
SHARDS = int(os.environ.get("SHARDS", "4"))
LINES = int(os.environ.get("LINES", "100000"))
POLL = float(os.environ.get("POLL_SECONDS", "5"))


def main() -> None:
    client = CybernetClient(URL, os.environ["KVESTIGATE_CYBERNET_TOKEN"])
    total: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as scratch,
        DistributedJob(client, prefix="batch", shards=SHARDS) as job,
    ):
        chunks = make(Path(scratch) / "inputs", SHARDS, LINES)
        job.discover_and_plan(cpu_per_shard=0.1, mem_per_shard="64Mi")
        job.provision(tmpfs_per_shard="64Mi")
        job.sync_code(HERE / "code")
        job.sync_per_shard(dict(enumerate(chunks)), subdir="datasets/input")
        job.run_parallel(
            ["python3", "process.py", "--output", "../checkpoints/counts.json"],
            [["--input", f"../datasets/input/{chunk.name}"] for chunk in chunks],
        )
        job.wait_until_complete(poll_interval=POLL)
        for found in job.fetch("checkpoints/counts.json", Path(scratch) / "results"):
            total.update(json.loads((found / "counts.json").read_text()))
    print(f"{SHARDS} chunks, {total.total()} words; most often: {total.most_common(1)[0][0]}")


if __name__ == "__main__":
    main()
