"""/metrics: requests, planes, watches and objects of the server, in Prometheus' text format.

The numbers are about the whole server, so only the root plane serves them. Metrics that
kube-apiserver has too have the same names.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.store.model import ResourceKey
from kvestigate.cluster.plane.store.plane import Breathe
from kvestigate.cluster.plane.store.store import Store
from kvestigate.http.message import Response

PATH = "/metrics"
MEDIA = "text/plain; version=0.0.4; charset=utf-8"

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0)
"""Seconds. The fast end is finer than kube-apiserver's: most requests are over before 5 ms."""
MAX_SERIES = 2000
"""Clients choose the paths that they request; beyond this many routes, all count as `other`."""

_VERBS = {"create": "POST", "update": "PUT"}

Route = tuple[str, str, str, str, str]
"""Verb, group, version, resource and subresource."""
_OTHER: Route = ("", "", "", "other", "")
_LABELS = ("verb", "group", "version", "resource", "subresource")


class _Requests:
    """The requests of one route: how many by code, and how long they took."""

    __slots__ = ("buckets", "codes", "seconds")

    def __init__(self) -> None:
        self.codes: Counter[int] = Counter()
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0


class Metrics:
    def __init__(self) -> None:
        self._routes: dict[Route, _Requests] = {}

    def observe(self, info: RequestInfo | None, code: int, seconds: float) -> None:
        """Count a request that was answered; `info` is None if it could not be parsed."""
        if info is None:
            route = _OTHER
        else:
            route = (info.verb, info.group, info.version, info.resource, info.subresource)
        requests = self._routes.get(route) or self._add(route)
        requests.codes[code] += 1
        requests.buckets[bisect_left(BUCKETS, seconds)] += 1
        requests.seconds += seconds

    def _add(self, route: Route) -> _Requests:
        if len(self._routes) >= MAX_SERIES:
            route = _OTHER
        return self._routes.setdefault(route, _Requests())

    async def respond(self, store: Store, breathe: Breathe) -> Response:
        lines: list[str] = []
        for line in self._request_lines():
            lines.append(line)
            await breathe()
        counts = await _StoreCounts.of(store, breathe)
        lines += [*counts.lines(), *_process_lines(), ""]
        return Response(200, [("content-type", MEDIA)], "\n".join(lines).encode())

    def _request_lines(self) -> Iterable[str]:
        name = "apiserver_request_total"
        yield from _head(name, "counter", "Number of requests that were answered.")
        routes = sorted(self._routes.items())
        for route, requests in routes:
            labels = _labels(route)
            for code, count in sorted(requests.codes.items()):
                yield _sample(name, count, {**labels, "code": str(code)})
        name = "apiserver_request_duration_seconds"
        yield from _head(name, "histogram", "Time from a request to the start of its response.")
        for route, requests in routes:
            labels = _labels(route)
            total = 0
            for limit, count in zip((*map(str, BUCKETS), "+Inf"), requests.buckets, strict=True):
                total += count
                yield _sample(f"{name}_bucket", total, {**labels, "le": limit})
            yield _sample(f"{name}_sum", requests.seconds, labels)
            yield _sample(f"{name}_count", total, labels)


def _labels(route: Route) -> dict[str, str]:
    verb, *rest = route
    return dict(zip(_LABELS, (_VERBS.get(verb, verb.upper()), *rest), strict=True))


@dataclass(frozen=True, slots=True)
class _StoreCounts:
    """The contents of a store; counted with pauses, as there may be ten thousand planes."""

    planes: int
    loaded: int
    watches: int
    objects: Mapping[ResourceKey, int]

    @classmethod
    async def of(cls, store: Store, breathe: Breathe) -> _StoreCounts:
        loaded = watches = 0
        objects: Counter[ResourceKey] = Counter()
        for plane in store.in_memory():
            await breathe()
            loaded += 1
            watches += plane.watchers
            for key, collection in plane.state.collections.items():
                objects[key] += len(collection)
        return cls(len(store), loaded, watches, objects)

    def lines(self) -> Iterable[str]:
        yield from _head("kvestigate_planes", "gauge", "Number of planes, in memory or not.")
        yield _sample("kvestigate_planes", self.planes)
        yield from _head("kvestigate_planes_loaded", "gauge", "Number of planes in memory.")
        yield _sample("kvestigate_planes_loaded", self.loaded)
        yield from _head("kvestigate_watches", "gauge", "Number of open watches.")
        yield _sample("kvestigate_watches", self.watches)
        name = "apiserver_resource_objects"
        yield from _head(name, "gauge", "Number of objects, in the planes that are in memory.")
        for (group, resource), count in sorted(self.objects.items()):
            yield _sample(name, count, {"group": group, "resource": resource})


def _process_lines() -> Iterable[str]:
    name = "process_cpu_seconds_total"
    yield from _head(name, "counter", "CPU time of the server in seconds.")
    yield _sample(name, time.process_time())
    pages = Path("/proc/self/statm")
    if pages.exists():  # on Linux only
        name = "process_resident_memory_bytes"
        yield from _head(name, "gauge", "Resident memory of the server in bytes.")
        resident = int(pages.read_text().split()[1])
        yield _sample(name, resident * os.sysconf("SC_PAGE_SIZE"))


def _head(name: str, kind: str, about: str) -> Iterable[str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _sample(name: str, value: float, labels: Mapping[str, str] | None = None) -> str:
    if not labels:
        return f"{name} {value}"
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
