"""What a report is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kvestigate.render.blocks import Block
from kvestigate.snapshot.snapshot import Cause, Gap, Snapshot
from kvestigate.snapshot.source import Source


@dataclass(frozen=True, slots=True)
class Report:
    """One view of a cluster. It shows what it can of a snapshot that has gaps."""

    name: str
    summary: str
    needs: tuple[Source[Any], ...]
    collect: Callable[[Snapshot], Any]
    """Pure: the result is a dataclass, and what `--json` writes."""
    render: Callable[[Any], Sequence[Block]]


def gap_line(gap: Gap, *, brief: bool = False) -> str:
    """`cannot list pods: permission denied (...)`; `brief` leaves out what the server said."""
    said = {
        Cause.DENIED: f"cannot {gap.verb} {gap.resource}: permission denied",
        Cause.ABSENT: f"cannot {gap.verb} {gap.resource}: the cluster does not serve them",
        Cause.UNAVAILABLE: f"cannot {gap.verb} {gap.resource}: their server does not answer",
    }[gap.cause]
    told = gap.cause is Cause.DENIED and not brief
    return f"{said} ({gap.message})" if told else said
