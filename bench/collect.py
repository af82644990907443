"""Following Deployments, beside a collector written with the official client."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.frame import BenchFailed
from bench.settings import Settings
from bench.versions import versions
from bench.workloads import deployment
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.crowd import everywhere
from tests.upstream.judge import Judge

Json = dict[str, Any]

_DEPLOYMENTS = 200
_EVENTS = {"kvestigate": 200_000, "official": 10_000}
"""How many each gets: enough that its start does not count."""


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    events: int
    per_cpu_second: float
    early_mib: float
    """Resident after a tenth of the events."""
    last_mib: float


@dataclass(frozen=True, slots=True)
class CollectResult:
    name: str
    method: str
    versions: Mapping[str, str]
    rows: Sequence[Row]
    """Ours first."""

    def as_json(self) -> dict[str, object]:
        return asdict(self)

    def render(self) -> str:
        lines = [f"{self.name}: {self.method}"]
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in self.versions.items()))
        titles = f"{'events':>8}  {'per CPU s':>10}  {'ours':>6}  {'MiB at 10%':>10}  {'at end':>8}"
        lines.append(f"  {'':10}  {titles}")
        for row in self.rows:
            ratio = self.rows[0].per_cpu_second / row.per_cpu_second
            lines.append(
                f"  {row.name:10}  {row.events:8,}  {row.per_cpu_second:10,.0f}  {ratio:5.1f}x  "
                f"{row.early_mib:10.1f}  {row.last_mib:8.1f}"
            )
        return "\n".join(lines)


def run(settings: Settings) -> CollectResult:
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as name:
        directory = Path(name)
        with UpstreamCluster(binaries.find(), directory) as cluster:
            recorded = _record(cluster)
        settings.progress(f"recorded {recorded.count(10)} events, {len(recorded) / 1e6:.1f} MB")
        tape = directory / "events"
        tape.write_bytes(recorded)
        rows = [_measure(each, tape, settings) for each in _EVENTS]
    method = (
        f"events of {_DEPLOYMENTS} Deployments ({len(recorded) / recorded.count(10) / 1000:.1f} KB "
        "each), recorded on a real kube-apiserver and played to both, a line written for each"
    )
    names = versions("kvestigate", "msgspec", "kubernetes")
    return CollectResult("collect", method, names, rows)


def _measure(name: str, tape: Path, settings: Settings) -> Row:
    wanted = _EVENTS[name]
    with _playing(tape, wanted) as port:
        config = tape.with_name("kubeconfig")
        config.write_text(json.dumps(_kubeconfig(port)))
        command = [sys.executable, "-m", "bench.collectors", name, str(config), str(wanted)]
        done = subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600
        )
    if done.returncode:
        raise BenchFailed(f"{name} ended with {done.returncode}:\n{done.stderr}")
    events, cpu, early, last = json.loads(done.stderr.splitlines()[-1])
    settings.progress(f"{name}: {events} events in {cpu:.1f} s of CPU")
    return Row(name, events, events / cpu, early / 2**20, last / 2**20)


@contextmanager
def _playing(tape: Path, count: int) -> Iterator[int]:
    command = [sys.executable, "-m", "bench.playback", str(tape), str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as player:
        try:
            assert player.stdout is not None
            yield int(player.stdout.readline())
        finally:
            player.kill()


def _kubeconfig(port: int) -> Json:
    return {
        "current-context": "tape",
        "contexts": [{"name": "tape", "context": {"cluster": "tape", "user": "tape"}}],
        "clusters": [{"name": "tape", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "tape", "user": {}}],
    }


def _record(cluster: UpstreamCluster) -> bytes:
    """What a watch says while each Deployment lives through a roll-out and a scaling."""
    everywhere(cluster, _DEPLOYMENTS, _live)
    with cluster.judge() as judge:
        # From the beginning: the server still knows every one of these versions.
        path = f"{_PATH}?watch=1&resourceVersion=1&timeoutSeconds=5"
        try:
            return judge.exchange("GET", path)
        except http.client.IncompleteRead as cut:
            return cut.partial


_PATH = "/apis/apps/v1/namespaces/default/deployments"


def _live(judge: Judge, index: int) -> None:
    name = f"{_PATH}/serving-{index:03}"
    judge.post(_PATH, deployment(index))
    for ready in (0, 1, 3):
        judge.merge(f"{name}/status", {"status": _status(1, ready)})
    judge.merge(name, {"spec": {"replicas": 5}})
    for ready in (3, 5):
        judge.merge(f"{name}/status", {"status": _status(2, ready)})


def _status(generation: int, ready: int) -> Json:
    condition = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
    return {
        "observedGeneration": generation,
        "replicas": 5,
        "updatedReplicas": 5,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "conditions": [condition | {"message": "Deployment has minimum availability."}],
    }
