"""Lengths of time as people write them: `30s`, `1m30s`, `500ms`, `2d`. Pure."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def parse(text: str) -> float:
    """Seconds; a bare number means seconds. ValueError if it is no duration."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write 30s, 1m30s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def text(seconds: float) -> str:
    """`1m30s`, `500ms`: what `parse` reads as the same, to the millisecond."""
    left, words = round(seconds * 1000), ""
    for unit, length in (
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ):
        count, left = divmod(left, length)
        words += f"{count}{unit}" if count else ""
    return words or "0s"
