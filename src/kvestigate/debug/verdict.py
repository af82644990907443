"""What a set of timings says about a cluster. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvestigate.render.human import milliseconds, size

# A trivial call across an ocean takes about this long; more is not distance alone.
SLOW_CALL = 0.3
# Name lookup, TCP and TLS are four round trips; a credential plugin is usually what makes more.
SLOW_CONNECTING = 0.5
# Half a thousand pods are a few megabytes: a healthy server sends them in tens of milliseconds.
SLOW_LIST = 2.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One call, made several times."""

    name: str
    p50: float = 0.0
    """Seconds until the whole body was there; so are the others."""
    fastest: float = 0.0
    slowest: float = 0.0
    size: int = 0
    """Bytes of the body, decompressed."""
    problem: str = ""
    """What the server said instead of an answer."""


def verdict(connecting: Sample, calls: Sequence[Sample]) -> str:
    """One line that names the worst of it; `calls` begins with the trivial one."""
    trivial, *lists = calls
    if trivial.problem:
        return f"no verdict: the server refuses even a trivial call: {trivial.problem}"
    if trivial.p50 > SLOW_CALL:
        return (
            f"slow network or overloaded server: a trivial call takes {milliseconds(trivial.p50)} "
            "on an open connection"
        )
    extra = connecting.p50 - trivial.p50
    if extra > SLOW_CONNECTING:
        return (
            f"connecting is slow: {milliseconds(extra)} more than a call on an open connection; "
            "look at name lookup, the proxy and the credential plugin"
        )
    answered = [sample for sample in lists if not sample.problem]
    slowest = max(answered, key=lambda sample: sample.p50, default=trivial)
    if slowest.p50 > SLOW_LIST:
        return (
            f"large answers are slow: {slowest.name} takes {milliseconds(slowest.p50)} "
            f"for {size(slowest.size)}; the server or the bandwidth is the limit"
        )
    return (
        f"healthy: a trivial call takes {milliseconds(trivial.p50)}, "
        f"connecting {milliseconds(max(extra, 0.0))} more"
        + (f", {slowest.name} {milliseconds(slowest.p50)}" if answered else "")
    )
