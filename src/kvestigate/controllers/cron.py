"""Cron schedules: five fields or `@daily`, in any time zone. Pure.

The grammar is that of the library which kube-controller-manager uses: names of months and days,
ranges, steps, `?` for `*`, Sunday is 0. Where both days are restricted, either may match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kvestigate.errors import InputError

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_HINT = "write five fields, as in 30 4 * * 1-5: minute, hour, day of month, month, day of week"
_FAR = timedelta(days=5 * 366)
"""A schedule such as 30 February never comes; nobody waits longer than this."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: Sequence[str] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When something is due. Build it with `parse`."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Whether one of the two day fields is a star: then both must match."""
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, in UTC."""
        at = after.astimezone(UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        end = at + _FAR
        while at < end:
            local = at.astimezone(self.zone)
            if local.month not in self.months:
                at = self._midnight(local.year + local.month // 12, local.month % 12 + 1, 1, at)
            elif not self._is_day(local):
                later = local.date() + timedelta(days=1)
                at = self._midnight(later.year, later.month, later.day, at)
            elif local.hour not in self.hours:
                at += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at
        return None

    def _is_day(self, local: datetime) -> bool:
        day = local.day in self.days
        weekday = local.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.any_day else (day or weekday)

    def _midnight(self, year: int, month: int, day: int, before: datetime) -> datetime:
        # A clock that is set forward at midnight has no such time; then the day begins later.
        found = datetime(year, month, day, tzinfo=self.zone).astimezone(UTC)
        return found if found > before else before + timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Every:
    """`@every 1h30m`: at a fixed distance."""

    pause: timedelta

    def next(self, after: datetime) -> datetime | None:
        return after.astimezone(UTC).replace(microsecond=0) + self.pause


def parse(text: str, zone: str | None = None) -> Schedule | Every:
    """The schedule of a CronJob; without a zone it is in UTC."""
    where = _zone(zone)
    if text.startswith("@every "):
        return Every(_duration(text.removeprefix("@every ").strip()))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise InputError(f"schedule {text!r}: unknown descriptor", hint=_HINT)
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise InputError(
            f"schedule {text!r}: expected exactly 5 fields, found {len(parts)}", hint=_HINT
        )
    numbers = [_numbers(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = numbers
    stars = any(parts[index].partition("/")[0] in ("*", "?") for index in (2, 4))
    return Schedule(minutes, hours, days, months, weekdays, stars, where)


def _zone(name: str | None) -> tzinfo:
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        hint = "use a name of the time zone database, such as Europe/Berlin"
        raise InputError(f"unknown time zone {name!r}", hint=hint) from None


def _numbers(text: str, field: _Field) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = _number(step_text, field, ()) if slash else 1
        if step < 1:
            raise InputError(f"{field.name} {part!r}: a step must be at least 1", hint=_HINT)
        low, high = _span(span, field, open_ended=bool(slash))
        found.update(range(low, high + 1, step))
    return frozenset(found)


def _span(text: str, field: _Field, *, open_ended: bool) -> tuple[int, int]:
    if text in ("*", "?"):
        return field.low, field.high
    first, dash, last = text.partition("-")
    low = _number(first, field, field.names)
    high = field.high if open_ended else low  # 5/15 means from 5 on
    if dash:
        high = _number(last, field, field.names)
    if not field.low <= low <= high <= field.high:
        bounds = f"{field.low} to {field.high}"
        raise InputError(f"{field.name} {text!r}: not within {bounds}", hint=_HINT)
    return low, high


def _number(text: str, field: _Field, names: Sequence[str]) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + field.low
    if not text.isdecimal() or not text.isascii():
        raise InputError(f"{field.name} {text!r}: not a number", hint=_HINT)
    return int(text)


def _duration(text: str) -> timedelta:
    units = {"h": 3600.0, "m": 60.0, "s": 1.0}
    total, number = 0.0, ""
    for char in text:
        if char.isdigit() or char == ".":
            number += char
        elif char in units and number.strip("."):
            total += float(number) * units[char] if number.count(".") < 2 else 0.0
            number = ""
        else:
            total = 0.0
            break
    if number or total < 1:
        raise InputError(f"duration {text!r}: write it like 1h30m, at least 1s", hint=_HINT)
    return timedelta(seconds=int(total))
