"""Parameter types that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable

import click

from kvestigate.errors import UsageError
from kvestigate.kube import durations


def duration(value: str) -> float:
    """Seconds from `30s`, `1m30s`, `500ms`, `2d`, or a bare number of seconds."""
    try:
        return durations.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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
