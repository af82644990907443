"""Test data: `python3 make_inputs.py DIRECTORY CHUNKS LINES` writes chunks of random words."""

from __future__ import annotations

import random
import sys
from pathlib import Path

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


def make(directory: Path, chunks: int, lines: int) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(chunks):
        source = random.Random(number)
        path = directory / f"chunk-{number}.txt"
        path.write_text("".join(f"{' '.join(source.choices(WORDS, k=8))}\n" for _ in range(lines)))
        made.append(path)
    return made


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
