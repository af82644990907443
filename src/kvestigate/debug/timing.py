"""`debug timing`: how long representative calls take, and what that says."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kvestigate.client.access import Access
from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.debug.verdict import Sample, verdict
from kvestigate.errors import ApiError
from kvestigate.http.message import Headers, Request
from kvestigate.operation import Effect, Operation

_JSON = "application/json"
_DISCOVERY = f"{_JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{_JSON}"

# What almost every command does: ask who is there, learn the types, list the small and the large.
CALLS: tuple[tuple[str, str, str, str], ...] = (
    ("version", "/version", "", _JSON),
    ("discovery", "/apis", "", _DISCOVERY),
    ("namespaces", "/api/v1/namespaces", "limit=500", _JSON),
    ("nodes", "/api/v1/nodes", "limit=500", _JSON),
    ("pods (500)", "/api/v1/pods", "limit=500", _JSON),
)


@dataclass(frozen=True, slots=True)
class TimingOptions:
    samples: int = 5
    """How often each call is made."""


@dataclass(frozen=True, slots=True)
class TimingReport:
    server: str
    samples: int
    connecting: Sample
    """The first call of a new client: name lookup, TCP, TLS and credentials included."""
    calls: tuple[Sample, ...]
    """On one kept connection."""
    verdict: str


async def collect(access: Access, options: TimingOptions) -> TimingReport:
    """Measure, one call after the other so that they do not slow each other."""
    version = _request(*CALLS[0][1:])

    async def anew() -> int:
        async with connect(access) as another:
            return len(await another.exchange.body(version))

    connecting = await _measure("version", anew, options.samples)
    async with connect(access) as api:
        # So that the first of the measured calls finds a connection too.
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


async def _measure(name: str, call: Callable[[], Awaitable[int]], samples: int) -> Sample:
    """A refusal is a result: someone who may not list nodes still has a slow cluster."""
    seconds: list[float] = []
    size = 0
    for _ in range(samples):
        started = time.perf_counter()
        try:
            size = await call()
        except ApiError as refused:
            return Sample(name, problem=refused.message)
        seconds.append(time.perf_counter() - started)
    return Sample(name, statistics.median(seconds), min(seconds), max(seconds), size)


OPERATION = Operation(
    name="debug.timing",
    summary="Time representative calls to find out what is slow.",
    input=TimingOptions,
    output=TimingReport,
    effect=Effect.READ,
    handler=collect,
)
