"""Instants as objects hold them. Pure: they are counted in seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def text(seconds: float) -> str:
    """`2026-03-01T12:00:00Z`"""
    return _written(int(seconds))


@lru_cache(maxsize=256)  # much happens in the same few seconds, or is told of again and again
def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_text(seconds: float) -> str:
    """`2026-03-01T12:00:00.000000Z`"""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
