"""Stands for a training: says what it was given, and takes its time."""

import os
import sys
import time

rank = int(os.environ.get("DIST_RANK", "0"))
world = int(os.environ.get("DIST_WORLD_SIZE", "1"))
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 3600

print(f"rank {rank} of {world}, GPUs: {os.environ.get('CUDA_VISIBLE_DEVICES', '')}", flush=True)
for step in range(steps):
    print(f"step {step + 1}/{steps}", flush=True)
    time.sleep(1)
