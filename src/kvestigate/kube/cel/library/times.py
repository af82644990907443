"""Timestamps and durations: reading, writing, and their parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library
from kvestigate.kube.cel.values import NANO, Duration, Timestamp

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": NANO,
    "m": 60 * NANO,
    "h": 3600 * NANO,
}
_PART = re.compile(r"([0-9]++(?:\.[0-9]*+)?|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_LONGEST = 256
"""Characters of a duration."""
_DURATION = re.compile(rf"([+-]?)((?:{_PART.pattern})+|0)")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)")


def duration(text: str) -> Duration:
    """As Go writes them: `1h30m`, `-1.5s`."""
    match = _DURATION.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise EvalError("type conversion error from 'string' to 'google.protobuf.Duration'")
    nanos = sum(int(Fraction(count) * _UNITS[unit]) for count, unit in _PART.findall(match[2]))
    return Duration(-nanos if match[1] == "-" else nanos)


def timestamp(text: str) -> Timestamp:
    """RFC 3339."""
    match = _TIMESTAMP.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        zone = "+00:00" if match[4] in "Zz" else match[4]
        moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}")
    except ValueError:
        message = "type conversion error from 'string' to 'google.protobuf.Timestamp'"
        raise EvalError(message) from None
    seconds = round((moment - _EPOCH).total_seconds())
    return Timestamp(seconds * NANO + int((match[3] or "0").ljust(9, "0")))


_EPOCH = datetime.fromtimestamp(0, UTC)


def timestamp_text(time: Timestamp) -> str:
    seconds, nanos = divmod(time.nanos, NANO)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{moment.replace(tzinfo=None).isoformat()}{fraction}Z"


def duration_text(length: Duration) -> str:
    """`5400s`"""
    seconds, nanos = divmod(abs(length.nanos), NANO)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    return f"{'-' if length.nanos < 0 else ''}{seconds}{fraction}s"


def _moment(time: Timestamp, zone: str = "UTC") -> datetime:
    return (_EPOCH + timedelta(seconds=time.nanos // NANO)).astimezone(_zone(zone))


def _zone(name: str) -> tzinfo:
    if match := _OFFSET.fullmatch(name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise EvalError(f"unknown time zone {name}") from None


def _parts() -> Library:
    read: dict[str, Callable[[datetime], int]] = {
        "getFullYear": lambda moment: moment.year,
        "getMonth": lambda moment: moment.month - 1,
        "getDate": lambda moment: moment.day,
        "getDayOfMonth": lambda moment: moment.day - 1,
        "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
        "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
        "getHours": lambda moment: moment.hour,
        "getMinutes": lambda moment: moment.minute,
        "getSeconds": lambda moment: moment.second,
    }
    made: dict[str, Callable[..., int]] = {}
    for name, part in read.items():
        made[f"timestamp::{name}() -> int"] = _reading(part)
        made[f"timestamp::{name}(string) -> int"] = _reading(part)
    return made


def _reading(part: Callable[[datetime], int]) -> Callable[..., int]:
    return lambda time, zone="UTC": part(_moment(time, zone))


def _whole(unit: int) -> Callable[[Duration], int]:
    """How many of the units there are, cut off towards zero."""
    return lambda length: abs(length.nanos) // unit * (-1 if length.nanos < 0 else 1)


def _milliseconds(time: Timestamp, zone: str = "UTC") -> int:
    return time.nanos % NANO // 1_000_000


FUNCTIONS: Library = {
    **_parts(),
    "timestamp::getMilliseconds() -> int": _milliseconds,
    "timestamp::getMilliseconds(string) -> int": _milliseconds,
    "duration::getHours() -> int": _whole(3600 * NANO),
    "duration::getMinutes() -> int": _whole(60 * NANO),
    "duration::getSeconds() -> int": _whole(NANO),
    "duration::getMilliseconds() -> int": _whole(1_000_000),
}
