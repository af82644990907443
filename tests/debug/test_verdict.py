"""What a set of timings says."""

from __future__ import annotations

import pytest

from kvestigate.debug.verdict import CallTiming, verdict


@pytest.mark.parametrize(
    ("connecting", "trivial", "pods", "said"),
    [
        (
            CallTiming("version", 0.02),
            CallTiming("version", 0.002),
            CallTiming("pods", 0.05, size=4_000_000),
            "healthy: a trivial call takes 2.0 ms, connecting 18 ms more, pods 50 ms",
        ),
        (
            CallTiming("version", 0.9),
            CallTiming("version", 0.4),
            CallTiming("pods", 3.0),
            "slow network or overloaded server: a trivial call takes 400 ms on an open connection",
        ),
        (
            CallTiming("version", 1.6),
            CallTiming("version", 0.1),
            CallTiming("pods", 3.0),
            "connecting is slow: 1.5 s more than a call on an open connection; "
            "check name lookup, the proxy and the credential plugin",
        ),
        (
            CallTiming("version", 0.02),
            CallTiming("version", 0.01),
            CallTiming("pods", 4.2, size=3 * 1024 * 1024),
            "large responses are slow: pods takes 4.2 s for 3.0 MiB; "
            "the server or the bandwidth is the limit",
        ),
        (
            CallTiming("version", 0.02),
            CallTiming("version", problem="Unauthorized"),
            CallTiming("pods", problem="Unauthorized"),
            "unknown (the server refuses even /version: Unauthorized)",
        ),
        (
            CallTiming("version", 0.001),
            CallTiming("version", 0.002),
            CallTiming("pods", problem="forbidden"),
            "healthy: a trivial call takes 2.0 ms, connecting 0.0 ms more",
        ),
    ],
    ids=["healthy", "slow", "slow to connect", "slow lists", "refused", "lists refused"],
)
def test_verdict(connecting: CallTiming, trivial: CallTiming, pods: CallTiming, said: str) -> None:
    assert verdict(connecting, [trivial, pods]) == said
