"""Parameter types that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable

import click

from kvestigate.kube import durations


def duration(value: str) -> float:
    """Seconds from `30s`, `1m30s`, `500ms`, `2d`, or a bare number of seconds."""
    try:
        return durations.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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
