"""Trains on from where the last run stopped, and says so."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch.distributed as ranks  # type: ignore[import-not-found]  # only in a scene

os.environ |= {
    "RANK": os.environ["NODE_RANK"],
    "WORLD_SIZE": os.environ["NUM_NODES"],
    "MASTER_PORT": "29500",
}
parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path)
# A shell that writes the task file may have put its own, empty $EPOCHS in.
parser.add_argument("--epochs", type=int, nargs="?", const=int(os.environ["EPOCHS"]))
given = parser.parse_args()

ranks.init_process_group()
checkpoint = given.data / f"checkpoint-{ranks.get_rank()}"
before = int(checkpoint.read_text()) if checkpoint.exists() else 0
together = ranks.all_reduce(given.epochs)
checkpoint.write_text(str(before + given.epochs))
print(f"rank {ranks.get_rank()}: from {before} to {before + given.epochs}, {together} in all")
ranks.destroy_process_group()
