"""Rank 0 of the pipeline: waits for a part from every worker and writes their sum."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

workers = int(os.environ["DIST_WORLD_SIZE"]) - 1
address = (os.environ["DIST_COORDINATOR"], int(os.environ["PIPELINE_PORT"]))
total = 0
with socket.create_server(address) as server:
    for count in range(1, workers + 1):
        connection, _ = server.accept()
        with connection, connection.makefile() as lines:
            part = json.loads(lines.readline())
        total += part["records"]
        print(f"{count} of {workers}: {part['records']} records of rank {part['rank']}", flush=True)
summary = json.dumps({"records": total, "workers": workers})
Path("../checkpoints/summary.json").write_text(summary)
