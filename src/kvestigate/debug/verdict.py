"""The verdict on a set of timings. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.render.human import milliseconds, size

# A trivial call across an ocean takes about this long.
SLOW_CALL = 0.3
# Name lookup, TCP and TLS are four round trips; more is usually a credential plugin.
SLOW_CONNECTING = 0.5
# 500 pods are a few megabytes, which a healthy server sends in tens of milliseconds.
SLOW_LIST = 2.0


@dataclass(frozen=True, slots=True)
class CallTiming:
    """One call, made several times."""

    name: str
    p50: float = 0.0
    """Median of the seconds until the whole body had arrived."""
    fastest: float = 0.0
    slowest: float = 0.0
    size: int = 0
    """Bytes of the body, decompressed."""
    problem: str = ""
    """The server's error message; empty if the call succeeded."""


def verdict(connecting: CallTiming, calls: Sequence[CallTiming]) -> str:
    """One line that names the worst problem; the first of `calls` is the trivial call."""
    trivial, *lists = calls
    if trivial.problem:
        return f"unknown (the server refuses even /version: {trivial.problem})"
    if trivial.p50 > SLOW_CALL:
        return (
            f"slow network or overloaded server: a trivial call takes {milliseconds(trivial.p50)} "
            "on an open connection"
        )
    extra = connecting.p50 - trivial.p50
    if extra > SLOW_CONNECTING:
        return (
            f"connecting is slow: {milliseconds(extra)} more than a call on an open connection; "
            "check name lookup, the proxy and the credential plugin"
        )
    answered = [sample for sample in lists if not sample.problem]
    slowest = max(answered, key=lambda sample: sample.p50, default=trivial)
    if slowest.p50 > SLOW_LIST:
        return (
            f"large responses are slow: {slowest.name} takes {milliseconds(slowest.p50)} "
            f"for {size(slowest.size)}; the server or the bandwidth is the limit"
        )
    return (
        f"healthy: a trivial call takes {milliseconds(trivial.p50)}, "
        f"connecting {milliseconds(max(extra, 0.0))} more"
        + (f", {slowest.name} {milliseconds(slowest.p50)}" if answered else "")
    )
