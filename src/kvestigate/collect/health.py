"""What a collector says about itself: alive, ready, and its counters for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kvestigate.collect.collector import Collector
from kvestigate.collect.lanes import Lane
from kvestigate.collect.watching import Follower
from kvestigate.http.message import Request, Response

_TEXT = [("content-type", "text/plain; version=0.0.4; charset=utf-8")]


@dataclass(frozen=True, slots=True)
class Health:
    """Answers `/healthz`, `/readyz` and `/metrics`: counters only, nothing of the workloads."""

    collector: Collector
    lanes: Sequence[Lane]
    followers: Sequence[Follower]

    async def handle(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, [*_TEXT, ("allow", "GET, HEAD")], b"only GET\n")
        status, text = self._answer(request.path)
        return Response(status, _TEXT, text.encode())

    def _answer(self, path: str) -> tuple[int, str]:
        match path:
            case "/healthz":
                return 200, "ok\n"
            case "/readyz":
                return self._ready()
            case "/metrics":
                return 200, "".join(self.metrics())
        return 404, "not found; the paths are /healthz, /readyz and /metrics\n"

    def _ready(self) -> tuple[int, str]:
        waiting = [
            follower.source.name for follower in self.followers if not follower.counts.synced
        ]
        return (503, f"not yet listed: {', '.join(waiting)}\n") if waiting else (200, "ok\n")

    def metrics(self) -> Iterator[str]:
        yield from _metric(
            "events_total", "counter", "Events emitted.", [("", self.collector.events)]
        )
        for name, meaning, read in _OF_LANES:
            kind = "counter" if name.endswith("_total") else "gauge"
            rows = [(f'sink="{lane.sink.name}"', read(lane)) for lane in self.lanes]
            yield from _metric(name, kind, meaning, rows)
        for name, meaning, count in _OF_FOLLOWERS:
            totals = [
                (f'stream="{follower.source.name}"', count(follower)) for follower in self.followers
            ]
            yield from _metric(name, "counter", meaning, totals)


_OF_LANES: tuple[tuple[str, str, Callable[[Lane], int]], ...] = (
    ("sink_sent_total", "Events delivered to the sink.", lambda lane: lane.sent),
    ("sink_dropped_total", "Events dropped while the sink failed.", lambda lane: lane.dropped),
    ("sink_rejected_total", "Events that the sink rejected.", lambda lane: lane.rejected),
    ("sink_waiting", "Events that wait for the sink.", len),
    ("sink_failing", "1 while the sink fails.", lambda lane: int(lane.failing)),
)
_OF_FOLLOWERS: tuple[tuple[str, str, Callable[[Follower], int]], ...] = (
    ("relists_total", "Complete lists.", lambda follower: follower.counts.relists),
    (
        "repeats_total",
        "Repeated events that were suppressed.",
        lambda follower: follower.counts.repeats,
    ),
    ("unreadable_total", "Objects that were skipped.", lambda follower: follower.counts.unreadable),
)


def _metric(name: str, kind: str, help: str, rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    yield f"# HELP k8s_collect_{name} {help}\n# TYPE k8s_collect_{name} {kind}\n"
    for labels, value in rows:
        yield f"k8s_collect_{name}{'{' + labels + '}' if labels else ''} {value}\n"
