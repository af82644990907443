"""Clusters at work: controllers, scheduler and simulated nodes, in one plane and in a thousand."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.frame import BenchFailed
from bench.rates import Target
from bench.settings import Settings
from bench.versions import versions
from tests.served_plane import ServedPlane
from tests.upstream.judge import Judge

_SETS = 1_000
_PLANES = 1_000
_REPLICAS = 3
_PATIENCE = 600.0
_LOOK = 0.25
"""Seconds between two looks at how far it is."""

_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@dataclass(frozen=True, slots=True)
class Figure:
    """What one piece of work took."""

    work: str
    wall: float
    cpu: float
    """Seconds of the server."""
    resident: float
    """MB of the server afterwards."""


@dataclass(frozen=True, slots=True)
class ClusterResult:
    name: str
    method: str
    versions: Mapping[str, str]
    figures: Sequence[Figure]

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        wide = max(len(figure.work) for figure in self.figures)
        lines = [f"{self.name}: {self.method}"]
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.versions.items()))
        for one in self.figures:
            took = f"{one.wall:7.1f} s  {one.cpu:7.1f} s CPU  {one.resident:6.0f} MB"
            lines.append(f"  {one.work:{wide}}  {took}")
        return "\n".join(lines)


def run(settings: Settings) -> ClusterResult:
    figures = [*_one_large(settings), *_many_sets(settings), *_many_planes(settings)]
    method = "one server with --memory --controllers; time until the API shows it done"
    return ClusterResult("cluster", method, versions("kvestigate"), figures)


def _one_large(settings: Settings) -> Iterator[Figure]:
    with _server(settings.nodes) as (target, judge):
        with _measured(target, settings, f"{settings.nodes} nodes Ready") as figure:
            judge.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "first"}})
            _until(lambda: _ready_nodes(judge) == settings.nodes)
        yield figure()
        each = max(1, settings.pods // 20)
        with _measured(target, settings, f"{each * 20} pods Running on them") as figure:
            for number in range(20):
                judge.post(_DEPLOYMENTS, _deployment(f"app-{number:02}", each))
            _until(lambda: _ready_replicas(judge) == each * 20)
        yield figure()


def _many_sets(settings: Settings) -> Iterator[Figure]:
    with _server(100) as (target, judge):
        work = f"{_SETS} Deployments of {_REPLICAS} on 100 nodes"
        with _measured(target, settings, work) as figure:
            for number in range(_SETS):
                judge.post(_DEPLOYMENTS, _deployment(f"app-{number:04}", _REPLICAS))
            _until(lambda: _ready_replicas(judge) == _SETS * _REPLICAS)
        yield figure()


def _many_planes(settings: Settings) -> Iterator[Figure]:
    with _server(1) as (target, judge):
        roots = [f"/clusters/plane-{number:04}/control-plane" for number in range(_PLANES)]
        work = f"{_PLANES} planes with a Deployment of {_REPLICAS} each"
        with _measured(target, settings, work) as figure:
            for root in roots:
                judge.post(f"{root}{_DEPLOYMENTS}", _deployment("web", _REPLICAS))
            for root in roots:
                _until(partial(_converged, judge, root))
        yield figure()


@contextmanager
def _server(nodes: int) -> Iterator[tuple[Target, Judge]]:
    options = ("--memory", "--controllers", "--nodes", str(nodes))
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name,
        ServedPlane(Path(name), *options) as served,
    ):
        pids = tuple(process.pid for process in served.processes)
        target = Target("kvestigate", served.port, served.ca_file, served.token, pids)
        with target.judge() as judge:
            yield target, judge


@contextmanager
def _measured(target: Target, settings: Settings, work: str) -> Iterator[Callable[[], Figure]]:
    began, cpu = time.perf_counter(), target.cpu()
    found: list[Figure] = []
    yield lambda: found[0]
    wall, spent = time.perf_counter() - began, target.cpu() - cpu
    found.append(Figure(work, wall, spent, target.resident() / 1e6))
    settings.progress(f"{work}: {wall:.1f} s")


def _until(done: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + _PATIENCE
    while not done():
        if time.perf_counter() > deadline:
            raise BenchFailed(f"not done after {_PATIENCE:g} seconds")
        time.sleep(_LOOK)


def _converged(judge: Judge, root: str) -> bool:
    return _ready_replicas(judge, root) == _REPLICAS


def _ready_nodes(judge: Judge) -> int:
    nodes = judge.get("/api/v1/nodes?resourceVersion=0")["items"]
    conditions = [each for node in nodes for each in node["status"].get("conditions", ())]
    return sum(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _ready_replicas(judge: Judge, root: str = "") -> int:
    found = judge.get(f"{root}{_DEPLOYMENTS}?resourceVersion=0")["items"]
    return sum(each["status"].get("readyReplicas", 0) for each in found)


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/app", "command": ["serve"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    selector = {"matchLabels": labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }
