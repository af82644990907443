"""Cron schedules as CronJobs write them: `*/5 9-17 * * mon-fri`, `@daily`, `@every 1h30m`.

Five fields - minute, hour, day of the month, month, day of the week - of which each lists
numbers, names, ranges and steps. What is wrong with a schedule is said in the API server's
words, for users see and search for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from kvestigate.errors import InputError


@dataclass(frozen=True, slots=True)
class Cron:
    """The moments that match all fields."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    any_day: bool
    """Days of the month are not restricted; if neither are, nor those of the week, all match.
    If both are restricted, a day that matches either does."""
    any_weekday: bool


@dataclass(frozen=True, slots=True)
class Every:
    """Always the same time after the last."""

    period: timedelta


Schedule = Cron | Every


@dataclass(frozen=True, slots=True)
class _Field:
    low: int
    high: int
    names: tuple[str, ...] = ()
    """What `low` and the numbers after it may be called."""


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, _MONTHS),
    _Field(0, 6, _WEEKDAYS),
)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_HINT = "use five fields such as '*/15 * * * *', or @hourly, @daily, @weekly, @monthly, @yearly"
_EVERY = "@every "

# Go's durations, in nanoseconds.
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_is_integer = re.compile("[+-]?[0-9]{1,18}").fullmatch
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"([+-]?)(0|(?:{_PART.pattern})+)")
_LONGEST_DURATION = 40
_FAR_DAYS = 5 * 366


def parse(text: str) -> Schedule:
    """The schedule, or InputError. A leading `TZ=` is the caller's to take off."""
    if text.startswith("@"):
        return _described(text)
    parts = text.split()
    if len(parts) != len(_FIELDS):
        listed = " ".join(parts)
        raise _wrong(f"expected exactly {len(_FIELDS)} fields, found {len(parts)}: [{listed}]")
    parsed = [_listed(part, field) for part, field in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (values for values, _ in parsed)
    return Cron(minutes, hours, days, months, weekdays, parsed[2][1], parsed[4][1])


def last_before(schedule: Cron, moment: datetime) -> datetime | None:
    """The latest time up to `moment` that matches, in the time zone of `moment`.

    None if there was none for five years: a schedule such as 30 February never comes.
    """
    for days in range(_FAR_DAYS):
        day = moment.date() - timedelta(days=days)
        if not _is_day(schedule, day):
            continue
        for hour in sorted(schedule.hours, reverse=True):
            for minute in sorted(schedule.minutes, reverse=True):
                at = datetime.combine(day, time(hour, minute), moment.tzinfo)
                if at <= moment:
                    return at
    return None


def _is_day(schedule: Cron, day: date) -> bool:
    if day.month not in schedule.months:
        return False
    in_month = day.day in schedule.days
    in_week = day.isoweekday() % 7 in schedule.weekdays
    if schedule.any_day or schedule.any_weekday:
        return in_month and in_week
    return in_month or in_week


def _wrong(message: str) -> InputError:
    return InputError(message, hint=_HINT)


def _described(text: str) -> Schedule:
    if text in _DESCRIPTORS:
        return parse(_DESCRIPTORS[text])
    if text.startswith(_EVERY):
        try:
            # Shorter periods than a second are a second, and fractions of one are cut off.
            nanos = _nanoseconds(text.removeprefix(_EVERY))
        except InputError as error:
            raise _wrong(f"failed to parse duration {text}: {error.message}") from None
        return Every(timedelta(seconds=max(1, nanos // 10**9)))
    raise _wrong(f"unrecognized descriptor: {text}")


def _listed(text: str, field: _Field) -> tuple[frozenset[int], bool]:
    """The numbers that a field lists, and whether it does not restrict anything."""
    values: set[int] = set()
    free = False
    for part in filter(None, text.split(",")):
        found, is_free = _range(part, field)
        values.update(found)
        free = free or is_free
    return frozenset(values), free


def _range(text: str, field: _Field) -> tuple[range, bool]:
    span, *steps = text.split("/")
    ends = span.split("-")
    free = ends[0] in ("*", "?")
    if free:
        start, end = field.low, field.high
    elif len(ends) > 2:
        _number(ends[0], field)
        raise _wrong(f"too many hyphens: {text}")
    else:
        start = _number(ends[0], field)
        end = start if len(ends) == 1 else _number(ends[1], field)
    step = 1
    if len(steps) > 1:
        raise _wrong(f"too many slashes: {text}")
    if steps:
        step = _integer(steps[0])
        if len(ends) == 1:
            end = field.high
    _check(start, end, step, text, field)
    return range(start, end + 1, step), free and step == 1


def _check(start: int, end: int, step: int, text: str, field: _Field) -> None:
    if start < field.low:
        raise _wrong(f"beginning of range ({start}) below minimum ({field.low}): {text}")
    if end > field.high:
        raise _wrong(f"end of range ({end}) above maximum ({field.high}): {text}")
    if start > end:
        raise _wrong(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise _wrong(f"step of range should be a positive number: {text}")


def _number(text: str, field: _Field) -> int:
    name = text.lower()
    return field.low + field.names.index(name) if name in field.names else _integer(text)


def _integer(text: str) -> int:
    if not _is_integer(text):
        why = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise _wrong(f"failed to parse int from {text}: {why}")
    value = int(text)
    if value < 0:
        raise _wrong(f"negative number ({value}) not allowed: {text}")
    return value


def _nanoseconds(text: str) -> int:
    """A duration as Go writes it: `1h30m`, `1.5h`, `-2s`."""
    match = _DURATION.fullmatch(text)
    parts = _PART.findall(match[2]) if match and len(text) <= _LONGEST_DURATION else ()
    total = sum(int(Decimal(count) * _UNITS[unit]) for count, unit in parts)
    if match is None or not (parts or match[2] == "0") or total >= 2**63:
        raise InputError(f'time: invalid duration "{text}"')
    return -total if match[1] == "-" else total
