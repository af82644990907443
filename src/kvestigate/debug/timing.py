"""`debug timing`: how long typical calls take, and a verdict."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.debug.verdict import CallTiming, verdict
from kvestigate.errors import ApiError
from kvestigate.http.message import Headers, Request
from kvestigate.operation import param

_JSON = "application/json"
_DISCOVERY = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{_JSON}"

# The calls that almost every command makes: version, discovery, small lists, a large list.
CALLS: tuple[tuple[str, str, str, str], ...] = (
    ("version", "/version", "", _JSON),
    ("discovery", "/apis", "", _DISCOVERY),
    ("namespaces", "/api/v1/namespaces", "limit=500", _JSON),
    ("nodes", "/api/v1/nodes", "limit=500", _JSON),
    ("pods (500)", "/api/v1/pods", "limit=500", _JSON),
)


@dataclass(frozen=True, slots=True)
class TimingOptions:
    samples: Annotated[int, param("Number of calls of each kind.", lowest=1, highest=1000)] = 5
    """The number of calls of each kind."""


@dataclass(frozen=True, slots=True)
class TimingReport:
    server: str
    samples: int
    connecting: CallTiming
    """The first call of a new client: name lookup, TCP, TLS and credentials included."""
    calls: tuple[CallTiming, ...]
    """Calls on one open connection."""
    verdict: str


async def collect(access: Access, options: TimingOptions) -> TimingReport:
    """One call after the other, so that they do not slow each other down."""
    version = _request(*CALLS[0][1:])

    async def anew() -> int:
        async with connect(access) as another:
            return len(await another.exchange.body(version))

    connecting = await _measure("version", anew, options.samples)
    async with connect(access) as api:
        # Opens the connection before the first measured call.
        await api.exchange.body(version)
        calls = [
            await _measure(name, _on(api, _request(path, query, accept)), options.samples)
            for name, path, query, accept in CALLS
        ]
    return TimingReport(
        server=str(access.server),
        samples=options.samples,
        connecting=connecting,
        calls=tuple(calls),
        verdict=verdict(connecting, calls),
    )


def _request(path: str, query: str, accept: str) -> Request:
    return Request("GET", path, query, Headers([("accept", accept)]))


def _on(api: Api, request: Request) -> Callable[[], Awaitable[int]]:
    async def call() -> int:
        return len(await api.exchange.body(request))

    return call


async def _measure(name: str, call: Callable[[], Awaitable[int]], samples: int) -> CallTiming:
    """A refused call is a sample with a problem; the other calls are still measured."""
    seconds: list[float] = []
    size = 0
    for _ in range(samples):
        started = time.perf_counter()
        try:
            size = await call()
        except ApiError as refused:
            return CallTiming(name, problem=refused.message)
        seconds.append(time.perf_counter() - started)
    return CallTiming(name, statistics.median(seconds), min(seconds), max(seconds), size)
