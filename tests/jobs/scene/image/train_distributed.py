"""Adds up what all ranks know."""

from __future__ import annotations

import torch.distributed as ranks  # type: ignore[import-not-found]  # only in a scene

ranks.init_process_group()
total = ranks.all_reduce(ranks.get_rank())
print(f"rank {ranks.get_rank()} of {ranks.get_world_size()}: {total}", flush=True)
ranks.destroy_process_group()
