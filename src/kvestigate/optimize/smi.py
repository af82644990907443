"""The query to `nvidia-smi` and the parser of its answer. Pure."""

from __future__ import annotations

import csv
from dataclasses import dataclass

from kvestigate.errors import InputError

_FIELDS = (
    "index",
    "uuid",
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "memory.total",
    "temperature.gpu",
    "power.draw",
    "power.limit",
)
COMMAND = ("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")


@dataclass(frozen=True, slots=True)
class Reading:
    """One GPU at one moment; None: the GPU does not report the value."""

    index: int
    uuid: str
    utilization: float | None
    """Percent of the time in which something computed; GPUs with MIG do not report it."""
    memory_traffic: float | None
    """Percent of the time in which memory was read or written."""
    memory_mib: float | None
    memory_total_mib: float | None
    temperature: float | None
    watts: float | None
    limit_watts: float | None
    """The power limit."""


def readings(text: str) -> tuple[Reading, ...]:
    """One reading for each line. Raises InputError for other output."""
    return tuple(_reading(row) for row in csv.reader(text.splitlines()) if any(row))


def _reading(row: list[str]) -> Reading:
    words = [word.strip() for word in row]
    if len(words) != len(_FIELDS) or not words[0].isascii() or not words[0].isdigit():
        raise InputError(f"nvidia-smi printed {', '.join(words)!r}, which does not describe a GPU")
    return Reading(int(words[0]), words[1], *map(_number, words[2:]))


def _number(word: str) -> float | None:
    """None for `[N/A]`, `[Not Supported]` and the like."""
    try:
        value = float(word)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
