"""Starts a program several times on a node: `python -m torch.distributed.launch OPTIONS FILE`"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("nproc_per_node", "nnodes", "node_rank", "master_port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--master_addr", required=True)
    parser.add_argument("program")
    given = parser.parse_args()
    processes = []
    for local in range(given.nproc_per_node):
        ranks = {
            "RANK": given.node_rank * given.nproc_per_node + local,
            "LOCAL_RANK": local,
            "WORLD_SIZE": given.nnodes * given.nproc_per_node,
            "MASTER_ADDR": given.master_addr,
            "MASTER_PORT": given.master_port,
        }
        env = os.environ | {name: str(value) for name, value in ranks.items()}
        processes.append(subprocess.Popen([sys.executable, "-S", given.program], env=env))
    return max(process.wait() for process in processes)


if __name__ == "__main__":
    raise SystemExit(main())
