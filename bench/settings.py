"""What a user of the benches can choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.frame import Progress, Report


@dataclass(frozen=True, slots=True)
class Settings:
    runs: int
    nodes: int
    pods: int
    progress: Progress


Bench = Callable[[Settings], Report]
