"""Makes a synthetic dataset on the quietest nodes, and brings its parts here.

SHARDS and ROWS_PER_SHARD set the size, OUTPUT the directory; KVESTIGATE_CYBERNET_URL and _TOKEN say
where and who.
"""

from __future__ import annotations

import os
from pathlib import Path

from kvestigate_client import CybernetClient, DistributedJob

HERE = Path(__file__).parent
URL = os.environ.get("KVESTIGATE_CYBERNET_URL", "http://localhost:8765")
SHARDS = int(os.environ.get("SHARDS", "4"))
ROWS = os.environ.get("ROWS_PER_SHARD", "1000000")
OUTPUT = Path(os.environ.get("OUTPUT", "dataset"))
POLL = float(os.environ.get("POLL_SECONDS", "10"))


def main() -> None:
    client = CybernetClient(URL, os.environ["KVESTIGATE_CYBERNET_TOKEN"])
    passed = {name: os.environ[name] for name in ("PROCESSES",) if name in os.environ}
    with DistributedJob(client, prefix="datagen", shards=SHARDS) as job:
        nodes = job.discover_and_plan(
            cpu_per_shard=0.1, mem_per_shard="64Mi", strategy="least-loaded"
        )
        job.provision(tmpfs_per_shard=os.environ.get("TMPFS", "8Gi"))
        job.sync_code(HERE / "code")
        job.run(["python3", "generate.py"], env={"ROWS_PER_SHARD": ROWS, **passed})
        job.wait_until_complete(poll_interval=POLL)
        parts = [part for found in job.fetch("datasets", OUTPUT) for part in found.rglob("*.jsonl")]
    rows = sum(part.read_text().count("\n") for part in parts)
    print(f"{rows} rows in {len(parts)} parts, made on {len(nodes)} nodes")


if __name__ == "__main__":
    main()
