"""The type of a report, and how gaps of a snapshot are worded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kvestigate.render.blocks import Block, Tone, text
from kvestigate.snapshot.gaps import Cause, Gap
from kvestigate.snapshot.model import Snapshot
from kvestigate.snapshot.source import Source

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Report:
    """One view of a cluster. From a snapshot with gaps it shows what was read."""

    name: str
    summary: str
    needs: tuple[Source[Any], ...]
    collect: Callable[[Snapshot], Any]
    """Pure. Returns a dataclass, which `--json` writes."""
    render: Callable[[Any], Sequence[Block]]


def or_not_listed(
    rows: Sequence[T] | None, shown: Callable[[Sequence[T]], Block], kind: str
) -> Block:
    """The table of the rows; a line that says so if the kind could not be listed."""
    if rows is None:
        return text(f"{kind}: unknown (they could not be listed)", Tone.WARN)
    return shown(rows)


def gap_reason(gap: Gap) -> str:
    """`listing pods is forbidden`"""
    reading = {"list": "listing", "get": "reading"}[gap.verb]
    return {
        Cause.DENIED: f"{reading} {gap.resource} is forbidden",
        Cause.ABSENT: f"the cluster does not serve {gap.resource}",
        Cause.UNAVAILABLE: f"the server of {gap.resource} does not answer",
        Cause.FAILED: f"{reading} {gap.resource} fails",
        Cause.TRUNCATED: f"{reading} {gap.resource} stopped early ({gap.message})",
    }[gap.cause]


def gap_line(gap: Gap, *, brief: bool = False) -> str:
    """`Listing pods is forbidden: ...`; `brief` omits the server's message."""
    reason = gap_reason(gap)
    quoted = gap.cause in (Cause.DENIED, Cause.FAILED) and not brief
    message = f": {gap.message}" if quoted else ""
    return f"{reason[0].upper()}{reason[1:]}{message}"
