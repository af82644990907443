"""How bad something is that was found, whatever it was found in. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable

from kvestigate.render.blocks import Tone


class Severity(enum.Enum):
    """The worst first."""

    CRITICAL = "critical"
    """It does not work now, or anybody can change it."""
    WARNING = "warning"
    """It works until the next event: a drain, a peak, a date."""
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)

    @property
    def tone(self) -> Tone:
        return _TONES[self]


_TONES = {Severity.CRITICAL: Tone.BAD, Severity.WARNING: Tone.WARN, Severity.INFO: Tone.DIM}


def at_least(severities: Iterable[Severity], limit: str) -> bool:
    """Whether something found is as bad as the severity of that name, or worse."""
    rank = Severity(limit).rank
    return any(severity.rank <= rank for severity in severities)


def tally(severities: Iterable[Severity]) -> str:
    """`3 critical, 6 warning`"""
    counts = Counter(severities)
    return ", ".join(
        f"{counts[severity]} {severity.value}" for severity in Severity if counts[severity]
    )
