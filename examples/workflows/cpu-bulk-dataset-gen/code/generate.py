"""Every shard: makes rows that only its rank makes, on as many processes as it has cores."""

from __future__ import annotations

import json
import os
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

RANK = int(os.environ["DIST_RANK"])
ROWS = int(os.environ["ROWS_PER_SHARD"])
PROCESSES = int(os.environ.get("PROCESSES", "0")) or os.cpu_count() or 1


def row(number: int) -> str:
    source = random.Random(f"{RANK}/{number}")
    values = [round(source.gauss(0, 1), 4) for _ in range(4)]
    return json.dumps({"id": f"{RANK}-{number}", "values": values, "label": sum(values) > 0})


if __name__ == "__main__":
    path = Path(f"../datasets/part-{RANK:05}.jsonl")
    with ProcessPoolExecutor(PROCESSES) as pool, path.open("w") as part:
        for made in pool.map(row, range(ROWS), chunksize=256):
            part.write(made + "\n")
    print(f"{ROWS} rows in {path.name}")
