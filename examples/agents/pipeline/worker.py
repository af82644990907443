"""Every other rank of the pipeline: reads its own chunk and tells the coordinator."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

PATIENCE = 60.0
"""Seconds for the coordinator to appear: nobody says which shard starts first."""

records = sum(
    len(chunk.read_text().splitlines()) for chunk in Path("../datasets/input").glob("*.jsonl")
)
address = (os.environ["DIST_COORDINATOR"], int(os.environ["PIPELINE_PORT"]))
deadline = time.monotonic() + PATIENCE
while True:
    try:
        with socket.create_connection(address, timeout=10) as connection:
            part = {"rank": int(os.environ["DIST_RANK"]), "records": records}
            connection.sendall(json.dumps(part).encode() + b"\n")
        break
    except OSError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.1)
print(f"{records} records")
