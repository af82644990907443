"""Instants: controllers count in seconds since the epoch, objects hold times. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def stamp(now: float) -> datetime:
    """`now` as an object holds it: in UTC, in whole seconds."""
    return datetime.fromtimestamp(int(now), UTC)


def text(now: float) -> str:
    """`2026-03-01T12:00:00Z`"""
    return _written(int(now))


@lru_cache(maxsize=64)
def _written(now: int) -> str:
    return stamp(now).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(time: datetime | None, default: float = 0.0) -> float:
    """A time of an object as seconds since the epoch."""
    return default if time is None else time.timestamp()


def earliest(*pauses: float | None) -> float | None:
    """The shortest of some pauses, None for those that need none."""
    return min((pause for pause in pauses if pause is not None), default=None)
