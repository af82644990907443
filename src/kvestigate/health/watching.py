"""`audit --watch`: findings as they come and go, and telling others of them."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kvestigate.errors import KvestigateError
from kvestigate.health.audit import Audit, unaccepted
from kvestigate.health.model import Finding
from kvestigate.render.blocks import one_line, printable

_MOST_LINES = 20
"""Lines of one message to a chat."""

Look = Callable[[], Awaitable[Audit]]
Known = Mapping[str, Finding]


class ChangeKind(enum.Enum):
    APPEARED = "appeared"
    WORSENED = "worsened"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Change:
    at: datetime
    """UTC."""
    what: ChangeKind
    finding: Finding


def known_after(known: Known, audit: Audit) -> Known:
    """The findings of an audit by key, with those that it could not check and that were known."""
    kept = {key: finding for key, finding in known.items() if finding.rule in audit.skipped}
    return kept | {finding.key: finding for finding in unaccepted(audit)}


def changes(before: Known, after: Known, at: datetime) -> tuple[Change, ...]:
    """What is new first, the most severe before the others; then what is gone."""
    made = []
    for key, finding in after.items():
        if key not in before:
            made.append(Change(at, ChangeKind.APPEARED, finding))
        elif finding.severity.rank < before[key].severity.rank:
            made.append(Change(at, ChangeKind.WORSENED, finding))
    gone = (finding for key, finding in before.items() if key not in after)
    return (*made, *(Change(at, ChangeKind.GONE, finding) for finding in gone))


async def watch(
    look: Look, every: float, failed: Callable[[KvestigateError], None]
) -> AsyncGenerator[tuple[Change, ...], None]:
    """Look again and again; a cluster that does not answer is asked again, and nothing is gone."""
    known: Known = {}
    while True:
        try:
            audit = await look()
        except KvestigateError as error:
            failed(error)
        else:
            after = known_after(known, audit)
            made = changes(known, after, audit.captured_at)
            known = after
            if made:
                yield made
        await asyncio.sleep(every)


def line(change: Change) -> str:
    """`12:03:14 appeared CRITICAL Deployment shop/web: ...`"""
    finding = change.finding
    severity = "" if change.what is ChangeKind.GONE else f"{finding.severity.value.upper()} "
    words = f"{change.at:%H:%M:%S} {change.what.value} {severity}{finding.subject} "
    return one_line(printable(f"{words}({finding.rule}): {finding.evidence}"))


def chat_message(changes: Sequence[Change]) -> dict[str, Any]:
    """The body that Slack's incoming webhooks take, and those of others that imitate them."""
    lines = [line(change) for change in changes[:_MOST_LINES]]
    left = len(changes) - len(lines)
    return {"text": "\n".join([*lines, *([f"and {left} more"] if left else [])])}
