"""Quantities as people read them: counts, ages, sizes, cores, durations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

T = TypeVar("T")

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY

# Below `limit` seconds an age is shown in `unit`s and, where given, the `rest` in smaller
# ones. The steps are kubectl's, so that the columns agree with what people know.
_STEPS: tuple[tuple[int, int, str, int, str], ...] = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)

_SIZES = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def or_unknown(amount: T | None, unit: Callable[[T], str] = str) -> str:
    """The amount in its unit; `unknown` if there is none."""
    return "unknown" if amount is None else unit(amount)


def counted(count: int, noun: str) -> str:
    """`1 pod`, `3 pods`"""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def since_when(moment: datetime | None) -> str:
    """` since 2026-03-01 11:30 UTC`, to append to a sentence; empty if the moment is unknown."""
    return f" since {moment:%Y-%m-%d %H:%M} UTC" if moment is not None else ""


def listed(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`"""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def age(seconds: float) -> str:
    """`3d4h`, exactly as kubectl's AGE column; clocks may disagree by less than two seconds."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    for limit, size, unit, rest_size, rest_unit in _STEPS:
        if whole < limit:
            count, left = divmod(whole, size)
            rest = left // rest_size if rest_size else 0
            return f"{count}{unit}{rest}{rest_unit}" if rest else f"{count}{unit}"
    return f"{whole // _YEAR}y"


def size(count: float) -> str:
    """`764.7 GiB`; bytes are whole."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    power = 0
    # 1023.96 would round to 1024.0 and belongs to the next unit.
    while abs(count := count / 1024) >= 1023.95 and power < len(_SIZES) - 1:
        power += 1
    return f"{count:.1f} {_SIZES[power]}"


def cores(count: float | Decimal) -> str:
    """`16`, `0.5`, `0.25`: at most three decimals, as millicores have."""
    text = f"{count:.3f}".rstrip("0").rstrip(".")
    return "0" if text in ("", "-0") else text


def milliseconds(seconds: float) -> str:
    """`0.8 ms`, `12 ms`, `3.4 s`: three significant figures are more than a network has."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    value = seconds * 1000
    return f"{value:.1f} ms" if value < 10 else f"{value:.0f} ms"
