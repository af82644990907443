"""The severity of a finding, of audits and of kubeconfigs. Pure."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable

from kvestigate.render.blocks import Tone


class Severity(enum.Enum):
    """From the most to the least severe."""

    CRITICAL = "critical"
    """Something does not work now, or everybody can change it."""
    WARNING = "warning"
    """Something works now, but fails at the next drain, peak or date."""
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)

    @property
    def tone(self) -> Tone:
        return _TONES[self]


_TONES = {Severity.CRITICAL: Tone.BAD, Severity.WARNING: Tone.WARN, Severity.INFO: Tone.DIM}


def at_least(severities: Iterable[Severity], limit: str) -> bool:
    """Whether one of the severities is `limit` or more severe."""
    rank = Severity(limit).rank
    return any(severity.rank <= rank for severity in severities)


def tally(severities: Iterable[Severity]) -> str:
    """`3 critical, 6 warning`"""
    counts = Counter(severities)
    return ", ".join(
        f"{counts[severity]} {severity.value}" for severity in Severity if counts[severity]
    )
