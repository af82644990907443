"""Shards that differ: one coordinates, the others each work on data of their own.

python3 examples/agents/heterogeneous_pipeline.py

needs a cyberspace that allows jobs (`kvestigate cybernet init --template distributed-cpu`), its
address in KVESTIGATE_CYBERNET_URL and a token in KVESTIGATE_CYBERNET_TOKEN. SHARDS, RECORDS and
PIPELINE_PORT set the size.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from kvestigate_client import CybernetClient, DistributedJob, ShardTask

CODE = Path(__file__).parent / "pipeline"
URL = os.environ.get("KVESTIGATE_CYBERNET_URL", "http://localhost:8765")
SHARDS = int(os.environ.get("SHARDS", "5"))
RECORDS = int(os.environ.get("RECORDS", "10000"))
PORT = os.environ.get("PIPELINE_PORT", "29600")
POLL = float(os.environ.get("POLL_SECONDS", "5"))


def make_chunks(directory: Path) -> dict[int, Path]:
    """Rank -> the file that it is to read; rank 0 gets none."""
    chunks = {}
    for rank in range(1, SHARDS):
        path = directory / f"chunk-{rank - 1}.jsonl"
        path.write_text("".join(json.dumps({"record": n}) + "\n" for n in range(RECORDS)))
        chunks[rank] = path
    return chunks


def main() -> None:
    client = CybernetClient(URL, os.environ["KVESTIGATE_CYBERNET_TOKEN"])
    with (
        tempfile.TemporaryDirectory() as scratch,
        DistributedJob(client, prefix="job-pipeline", shards=SHARDS) as job,
    ):
        # 1. Where: a node for each shard that has room for it, the quietest first.
        job.discover_and_plan(cpu_per_shard=0.1, mem_per_shard="32Mi")
        # 2. A workspace on each of them, in memory, or none if one cannot be made.
        job.provision(tmpfs_per_shard="32Mi")
        # 3. The same code for all, and for each worker the data that only it needs.
        job.sync_code(CODE)
        job.sync_per_shard(make_chunks(Path(scratch)), subdir="datasets/input")
        # 4. Rank 0 is special.
        port = {"PIPELINE_PORT": PORT}
        workers = range(1, SHARDS)
        job.run_tasks(
            [
                ShardTask(["python3", "coordinator.py"], {"ROLE": "coordinator", **port}, rank=0),
                *(
                    ShardTask(["python3", "worker.py"], {"ROLE": "worker", **port}, rank=rank)
                    for rank in workers
                ),
            ]
        )
        # 5. What rank 0 says is shown while we wait; a shard that fails is an exception.
        job.wait_until_complete(poll_interval=POLL)
        [found] = job.fetch("checkpoints/summary.json", scratch, ranks=[0])
        summary = json.loads((found / "summary.json").read_text())
    # 6. Leaving the block has removed every workspace, as it would have after an exception.
    print(f"{summary['records']} records from {summary['workers']} workers")


if __name__ == "__main__":
    main()
