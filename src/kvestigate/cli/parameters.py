"""Parameter types that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import click

from kvestigate.errors import UsageError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def duration(value: str) -> float:
    """Seconds from `30s`, `1m30s`, `500ms`, `2d`, or a bare number of seconds."""
    if _NUMBER.fullmatch(value):
        return float(value)
    if not _WHOLE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a duration; write 30s, 1m30s or 500ms")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(value))


def kind_and_name(kind: str, name: str | None) -> tuple[str, str]:
    """Of an object that was named as `pod web-0` or `pod/web-0`."""
    if name is None:
        kind, slash, name = kind.partition("/")
        if not (kind and slash and name):
            raise UsageError(
                "missing argument 'NAME'",
                hint="write KIND NAME or KIND/NAME: `pod web-0` or `pod/web-0`",
            )
    return kind, name


def number(value: str) -> float:
    """Any number that is one: neither infinite nor not a number."""
    try:
        given = float(value)
    except ValueError:
        given = math.nan
    if not math.isfinite(given):
        raise click.BadParameter(f"{value!r} is not a number")
    return given


def whole_number(lowest: int, highest: int) -> Callable[[str], int]:
    """The type of a number from `lowest` to `highest`."""

    def number(value: str) -> int:
        try:
            count = int(value)
        except ValueError:
            count = lowest - 1
        if not lowest <= count <= highest:
            raise click.BadParameter(f"{value!r} is not a whole number from {lowest} to {highest}")
        return count

    return number


SEED = whole_number(-(2**63), 2**63 - 1)
"""The type of what chance begins with."""
