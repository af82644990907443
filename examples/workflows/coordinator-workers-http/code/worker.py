"""Every other rank: takes numbers from the coordinator until there are none."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request

BASE = f"http://{os.environ['DIST_COORDINATOR']}:{os.environ['COORDINATOR_PORT']}"
RANK = os.environ["DIST_RANK"]
PATIENCE = 60.0
"""Seconds for the coordinator to appear: nobody says which shard starts first."""


def ask(path: str, body: object = None) -> dict[str, int | None]:
    data = None if body is None else json.dumps(body).encode()
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"{BASE}{path}", data, timeout=10) as answer:
                found: dict[str, int | None] = json.loads(answer.read())
                return found
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


while (task := ask(f"/task?{RANK}")["task"]) is not None:
    ask("/result", {"task": task, "result": task * task})
print(f"rank {RANK} is done")
