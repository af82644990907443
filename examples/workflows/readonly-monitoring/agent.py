"""Watches a cluster through reports and says what changes, one line of JSON each.

ROUNDS (0 for ever) and INTERVAL_SECONDS set the pace; KVESTIGATE_CYBERNET_URL and _TOKEN say where
and who.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from kvestigate_client import CybernetClient, CybernetError

URL = os.environ.get("KVESTIGATE_CYBERNET_URL", "http://localhost:8765")
ROUNDS = int(os.environ.get("ROUNDS", "0"))
INTERVAL = float(os.environ.get("INTERVAL_SECONDS", "30"))


def observed(client: CybernetClient) -> dict[str, dict[str, Any]]:
    """Node -> what is worth a line when it changes."""
    report = client.call("report.run", {"name": "nodes"})["report"]
    return {
        node["name"]: {
            "ready": node["ready"],
            "schedulable": node["schedulable"],
            "gpus_requested": node["gpus"]["requested"],
            "pods": node["pods"]["requested"],
        }
        for node in report["nodes"]
    }


def main() -> None:
    client = CybernetClient(URL, os.environ["KVESTIGATE_CYBERNET_TOKEN"], timeout=60)
    before: dict[str, dict[str, Any]] = {}
    done = 0
    while not ROUNDS or done < ROUNDS:
        if done:
            time.sleep(INTERVAL)
        done += 1
        try:
            now = observed(client)
        except CybernetError as error:  # the next round may be luckier
            print(json.dumps({"error": error.message, "reason": error.reason}), flush=True)
            continue
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                change = {"node": name, "before": before.get(name), "now": now.get(name)}
                print(json.dumps(change), flush=True)
        before = now


if __name__ == "__main__":
    main()
