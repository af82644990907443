"""Planes as environments: fleets, snapshots, forks, resets, whole episodes, and the neighbours."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from bench import noise
from bench.fetch import Fetcher
from bench.frame import BenchFailed
from bench.rates import Target
from bench.settings import Settings
from bench.versions import versions
from kvestigate_client import Plane, PlaneClient
from tests.served_plane import ServedPlane
from tests.upstream import binaries
from tests.upstream.cluster import ADMIN_TOKEN, UpstreamCluster
from tests.upstream.judge import Judge

_OBJECTS = 1_000
_FORKS = 1_000
"""One after the other: of a hundred, the slowest would be what is called p99."""
_SNAPSHOTS = 1_000
_TURNS, _LISTINGS = 10, 3
"""In which they are taken, and after each of which all is listed so many times instead."""
_MANY = 10_000
"""Forks at once, so many that the pages they take can be counted."""
_ROUNDS = 8
_PODS = "/api/v1/namespaces/default/pods"
_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    value: float
    unit: str
    goal: str


@dataclass(frozen=True, slots=True)
class FleetResult:
    name: str
    method: str
    versions: Mapping[str, str]
    figures: Sequence[Figure]

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        wide = max(len(figure.name) for figure in self.figures)
        lines = [f"{self.name}: {self.method}"]
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.versions.items()))
        for figure in self.figures:
            value = f"{figure.value:10.2f} {figure.unit}"
            lines.append(f"  {figure.name:{wide}}  {value:18}  {figure.goal}".rstrip())
        return "\n".join(lines)


def run(settings: Settings) -> FleetResult:
    figures: list[Figure] = []
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name,
        ServedPlane(Path(name), "--memory") as served,
        PlaneClient.from_kubeconfig(served.kubeconfig, timeout=120) as client,
    ):
        pids = tuple(process.pid for process in served.processes)
        target = Target("kvestigate", served.port, served.ca_file, served.token, pids)
        with served.judge() as judge:
            judge.get("/version")  # the handshake of the connection is nobody's figure
            for part in (_forks, _fleets, _snapshots, _resets, _episodes, _neighbours):
                for figure in part(client, target, judge):
                    settings.progress(f"{figure.name}: {figure.value:.2f} {figure.unit}")
                    figures.append(figure)
    method = (
        "one server in memory, over HTTPS on loopback, one client process, one more for noise "
        "that leaves the processors to the others"
    )
    return FleetResult("fleet", method, versions("kvestigate"), figures)


def _fleets(client: PlaneClient, target: Target, judge: Judge) -> Iterator[Figure]:
    for size, goal, most in ((1_000, "<= 2 s", ""), (10_000, "<= 20 s", "<= 500 MB")):
        fleet = client.fleet(f"fleet-{size}")
        began = time.perf_counter()
        fleet.create(size)
        fleet.wait(timeout=120)
        yield Figure(f"fleet of {size} ready", time.perf_counter() - began, "s", goal)
        yield Figure(
            f"server with {size} members and those forks", target.resident() / 1e6, "MB", most
        )
        fleet.delete()


def _snapshots(client: PlaneClient, target: Target, judge: Judge) -> Iterator[Figure]:
    plane = _filled(client, "snapshots")
    path = f"{plane.path}/snapshot"
    ours: list[list[float]] = []
    theirs: list[list[float]] = []
    server = own = 0.0
    with Fetcher(target) as fetcher, _listing() as list_everything:
        for _ in range(_TURNS):  # so that a slow second is slow for both
            before, began = target.cpu(), time.process_time()
            ours.append(_times(lambda: fetcher.get(path), _SNAPSHOTS // _TURNS))
            server += target.cpu() - before
            own += time.process_time() - began
            theirs.append(_times(list_everything, _LISTINGS))
        changed = list(_dirty(plane, judge, fetcher))
    yield Figure("snapshot of 1,000 objects, p50", _p(_all(ours), 50), "ms", "<= 3 ms")
    yield Figure("snapshot of 1,000 objects, server CPU", server / _SNAPSHOTS * 1e3, "ms", "")
    yield Figure("snapshot of 1,000 objects, client CPU", own / _SNAPSHOTS * 1e3, "ms", "")
    yield Figure("snapshot after a write, p50", _p(changed, 50), "ms", "")
    yield Figure("listing all from kube-apiserver, p50", _p(_all(theirs), 50), "ms", "")
    ratios = [_p(listed, 50) / _p(seen, 50) for listed, seen in zip(theirs, ours, strict=True)]
    yield Figure("ratio, median of the turns", statistics.median(ratios), "x", ">= 50x")
    seen, wrong = _crowd(client, plane)
    yield Figure(f"of {seen} snapshots of 32 clients, torn", wrong, "", "0")


def _dirty(plane: Plane, judge: Judge, fetcher: Fetcher) -> Iterator[float]:
    """Snapshots of a plane in which one object has changed since the last one."""
    for number in range(100):
        change = {"metadata": {"annotations": {"number": str(number)}}}
        judge.merge(f"{plane.path}{_PODS}/pod-7", change)
        yield from _times(lambda: fetcher.get(f"{plane.path}/snapshot"), 1)


@contextmanager
def _listing() -> Iterator[Callable[[], object]]:
    """Gets the same objects from kube-apiserver, one list after another, as a client without
    snapshots has to."""
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name,
        UpstreamCluster(binaries.find(), Path(name)) as cluster,
        cluster.judge() as judge,
    ):
        account = {"metadata": {"name": "default"}}
        judge.ensure("/api/v1/namespaces/default/serviceaccounts", account)
        for number in range(_OBJECTS):
            judge.post(_PODS, _pod(number))
        paths = _collections(judge)
        target = Target(
            "kube-apiserver", cluster.port, cluster.ca_file, ADMIN_TOKEN, cluster.pids()
        )
        with Fetcher(target) as fetcher:
            yield lambda: [fetcher.get(path) for path in paths]


def _collections(judge: Judge) -> list[str]:
    groups = judge.get("/apis")["groups"]
    roots = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    return [
        f"{root}/{resource['name']}"
        for root in roots
        for resource in judge.get(root)["resources"]
        if "list" in resource["verbs"] and "/" not in resource["name"]
    ]


def _crowd(client: PlaneClient, plane: Plane) -> tuple[int, int]:
    """32 clients take snapshots while one writes; how many they took, how many were torn.

    The writer counts in one object and adds another object each time, so both tell the count.
    """
    plane.apply(_map("count", n="0"))
    stop = threading.Event()
    results: list[bool] = []

    def look() -> None:
        while not stop.is_set():
            snapshot = plane.snapshot(["configmaps"])
            count = snapshot.find("configmaps", "count")
            added = len(snapshot.items("configmaps")) - 1
            told = -1 if count is None else int(count["data"]["n"])
            results.append(told in (added, added + 1))

    lookers = [threading.Thread(target=look) for _ in range(32)]
    for looker in lookers:
        looker.start()
    try:
        for number in range(1, 101):
            plane.request("PATCH", f"{_MAPS}/count", {"data": {"n": str(number)}})
            plane.request("POST", _MAPS, _map(f"n-{number}"))
    finally:
        stop.set()
        for looker in lookers:
            looker.join(timeout=60)
    return len(results), results.count(False)


def _forks(client: PlaneClient, target: Target, judge: Judge) -> Iterator[Figure]:
    plane = _filled(client, "forks")
    path = f"{plane.path}/fork"
    times = _times(lambda: judge.post(path, {}), _FORKS)
    yield Figure("fork of 1,000 objects, p50", _p(times, 50), "ms", "")
    yield Figure("fork of 1,000 objects, p99", _p(times, 99), "ms", "<= 2 ms")
    resident = target.resident()
    judge.post(path, {"count": _MANY})
    yield Figure(
        "each, of 10,000 more", (target.resident() - resident) / _MANY / 1e3, "KB", "<= 20 KB"
    )


def _resets(client: PlaneClient, target: Target, judge: Judge) -> Iterator[Figure]:
    plane = client.create("resets")
    for number in range(20):
        plane.apply(_map(f"m-{number}", n="0"))
    plane.checkpoint("start")
    clean = plane.snapshot().digest()
    random, wrong, times = Random(7), 0, []
    for round_ in range(1_000):
        name = f"m-{random.randrange(20)}"
        plane.request("PATCH", f"{_MAPS}/{name}", {"data": {"n": str(round_ + 1)}})
        plane.request("POST", _MAPS, _map(f"new-{round_}"))
        plane.request("DELETE", f"{_MAPS}/m-{random.randrange(20)}")
        times += _times(lambda: plane.restore("start"), 1)
        wrong += plane.snapshot().digest() != clean
    yield Figure("reset, p50", _p(times, 50), "ms", "")
    yield Figure("of 1,000 dirty resets, other contents", wrong, "", "0")


def _episodes(client: PlaneClient, target: Target, judge: Judge) -> Iterator[Figure]:
    """Reset, 20 actions with controllers that converge in virtual time, snapshot, score."""
    plane = client.create("episodes", clock="virtual", seed=7)
    plane.step()
    plane.checkpoint("start")
    episodes, changes = 10, 0
    before = target.cpu()
    for _ in range(episodes):
        (run,) = plane.fork(checkpoint="start")
        for action in range(20):
            run.apply(_deployment(1 + action % 5))
            changes += run.step(5).changes
        found = run.snapshot(["deployments"]).find("deployments", "web")
        if found is None or not found["status"].get("readyReplicas"):
            raise BenchFailed("an episode came to nothing: no replica is ready")
        client.delete(run.id)
    cpu = target.cpu() - before
    yield Figure("episodes of 20 actions a second of server CPU", episodes / cpu, "/s", "")
    yield Figure("changes that crews make in an episode", changes / episodes, "", "")
    yield Figure("server CPU a change, actions included", cpu / changes * 1e6, "us", "")


def _neighbours(client: PlaneClient, target: Target, judge: Judge) -> Iterator[Figure]:
    quiet = client.create("quiet")
    quiet.apply(_map("a"))
    path = f"{quiet.path}{_MAPS}/a"
    clean = quiet.snapshot().digest()
    alone: list[float] = []
    beside: dict[str, list[float]] = {kind: [] for kind in noise.KINDS}
    for round_ in range(_ROUNDS):  # interleaved, so that a slow minute hits all alike
        alone += _times(lambda: judge.get(path), 500)
        for kind, times in beside.items():
            noisy = client.create(f"{kind}-{round_}")
            with _noise(target, noisy.id, kind):
                times += _times(lambda: judge.get(path), 500)
            client.delete(noisy.id)
    yield Figure("GET in a plane alone, p99", _p(alone, 99), "ms", "")
    for kind, times in beside.items():
        yield Figure(f"GET beside a plane that gets {kind}, p99", _p(times, 99), "ms", "within 2x")
    yield Figure("objects changed by the neighbour", quiet.snapshot().digest() != clean, "", "0")


@contextmanager
def _noise(target: Target, plane: str, kind: str) -> Iterator[None]:
    told = (str(target.port), str(target.ca), target.token, plane, kind)
    command = [sys.executable, "-m", "bench.noise", *told]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it has begun
        try:
            yield
        finally:
            process.kill()


def _filled(client: PlaneClient, name: str) -> Plane:
    plane = client.create(name)
    for number in range(_OBJECTS):
        plane.request("POST", _PODS, _pod(number))
    return plane


def _pod(number: int) -> dict[str, Any]:
    env = [{"name": f"NAME_{each}", "value": "x" * 20} for each in range(10)]
    container = {"name": "main", "image": "registry.example/app:1", "env": env}
    return {
        "metadata": {"name": f"pod-{number}", "labels": {"app": "web"}},
        "spec": {"containers": [container]},
    }


def _map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "main", "image": "app:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _times(what: Callable[[], object], count: int) -> list[float]:
    """Milliseconds of each, none of them spent on the garbage of the bench itself."""
    found = []
    gc.disable()
    try:
        for _ in range(count):
            began = time.perf_counter()
            what()
            found.append((time.perf_counter() - began) * 1e3)
    finally:
        gc.enable()
    return found


def _all(turns: Sequence[Sequence[float]]) -> list[float]:
    return [each for turn in turns for each in turn]


def _p(times: Sequence[float], percent: int) -> float:
    return statistics.quantiles(times, n=100)[percent - 1] if len(times) > 1 else times[0]
