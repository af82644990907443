"""What every shard runs: counts the words of one chunk. Knows nothing of the other shards."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--input", type=Path, required=True)
parser.add_argument("--output", type=Path, required=True)
arguments = parser.parse_args()

counts: Counter[str] = Counter()
with arguments.input.open() as lines:
    for line in lines:
        counts.update(line.split())
arguments.output.parent.mkdir(parents=True, exist_ok=True)
arguments.output.write_text(json.dumps(counts))
print(f"{arguments.input.name}: {counts.total()} words")
