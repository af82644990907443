"""Instants: controllers count in seconds since the epoch, objects hold times. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(now: float) -> datetime:
    """`now` as an object holds it: in UTC, in whole seconds."""
    return datetime.fromtimestamp(int(now), UTC)


def seconds(time: datetime | None, default: float = 0.0) -> float:
    """A time of an object as seconds since the epoch."""
    return default if time is None else time.timestamp()


def earliest(*pauses: float | None) -> float | None:
    """The shortest of some pauses, None for those that need none."""
    return min((pause for pause in pauses if pause is not None), default=None)
