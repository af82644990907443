"""An audit of a whole cluster, beside kubectl and the official client merely listing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.frame import BenchFailed, Contender, Result, race
from bench.population import namespace, pod_name, populate, workload
from bench.settings import Settings
from bench.stocked import StockedPlane
from bench.versions import versions
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster
from tests.upstream.crowd import everywhere
from tests.upstream.judge import Judge

_LARGER = 5
"""A plane is given so many times what the real server is given, which takes it too long."""
_WORKLOADS = 400
_EVENTS = 5_000
"""Warnings about pods; an audit reads no more."""
_PEERS_RUNS = 3
"""Of those that take half a minute each on the real server."""
_PEERS_PATIENCE = 420.0
"""A peer that takes longer than this on the larger cluster has lost."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The same race on two servers."""

    name: str
    races: Sequence[Result]

    def as_json(self) -> dict[str, object]:
        return {"name": self.name, "races": [one.as_json() for one in self.races]}

    def render(self) -> str:
        return "\n\n".join(one.render() for one in self.races)


def run(settings: Settings) -> AuditResult:
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as directory:
        return AuditResult(
            "audit",
            [_on_kubernetes(settings, Path(directory)), _on_plane(settings, Path(directory))],
        )


def _on_kubernetes(settings: Settings, directory: Path) -> Result:
    nodes, pods = settings.nodes, settings.pods
    with UpstreamCluster(binaries.find(), directory) as cluster:
        with _filling(settings, nodes, pods):
            populate(cluster, nodes=nodes, pods=pods)
            everywhere(cluster, _WORKLOADS, _create_workload)
            everywhere(cluster, _EVENTS, _create_event)
        where = f"a real kube-apiserver, with {_EVENTS} Events"
        return _race(cluster.admin_kubeconfig(), where, nodes, pods, _PEERS_RUNS, settings)


def _on_plane(settings: Settings, directory: Path) -> Result:
    nodes, pods = settings.nodes * _LARGER, settings.pods * _LARGER
    with ExitStack() as stack:
        with _filling(settings, nodes, pods):
            plane = StockedPlane(directory, nodes=nodes, pods=pods, sets=_WORKLOADS)
            stack.enter_context(plane)
        # Peers that keep everything need gigabytes for minutes: once must do.
        return _race(plane.admin_kubeconfig(), "a plane", nodes, pods, 1, settings)


@contextmanager
def _filling(settings: Settings, nodes: int, pods: int) -> Iterator[None]:
    settings.progress(f"creating {nodes} nodes and {pods} pods")
    started = time.monotonic()
    yield
    settings.progress(f"created in {time.monotonic() - started:.0f} s")


def _race(
    kubeconfig: Path, where: str, nodes: int, pods: int, peers_runs: int, settings: Settings
) -> Result:
    config = str(kubeconfig)
    with tempfile.TemporaryDirectory(prefix="kvestigate-bench-home-") as home:
        environment = os.environ | {"HOME": home}
        _check(config, environment, nodes, pods)
        rows = race(_contenders(config, environment, peers_runs), settings.runs, settings.progress)
    method = (
        f"{nodes} nodes, {pods} pods, {_WORKLOADS} Deployments and Services on {where}; "
        f"median of {settings.runs} runs of ours, {min(settings.runs, peers_runs)} of the others, "
        "interleaved"
    )
    return Result("audit", method, versions("kvestigate", "msgspec", "kubernetes"), rows)


def _contenders(config: str, environment: Mapping[str, str], peers_runs: int) -> list[Contender]:
    def peer(name: str, command: Sequence[str], environment: Mapping[str, str]) -> Contender:
        return Contender(
            name,
            command,
            environment,
            runs=peers_runs,
            patience=_PEERS_PATIENCE,
            may_fail=True,
        )

    kubectl = [binaries.find().path("kubectl"), f"--kubeconfig={config}"]
    listed = ["get", "nodes,pods,deployments,services", "-A", "-ojson"]
    reader = [sys.executable, "-m", "bench.readers", "official-all", config]
    return [
        Contender("kvestigate audit -o json", _audit(config), environment),
        peer("kubectl get -o json", [*kubectl, *listed], environment),
        peer("official client, the same lists", reader, {}),
    ]


def _audit(config: str) -> list[str]:
    return [sys.executable, "-m", "kvestigate", "--kubeconfig", config, "audit", "-ojson"]


def _check(config: str, environment: Mapping[str, str], nodes: int, pods: int) -> None:
    """What the audit says must be what was created."""
    done = subprocess.run(
        _audit(config), env=dict(environment), capture_output=True, check=True, timeout=600
    )
    total = json.loads(done.stdout)["reports"]["nodes"]
    found = (
        len(total["nodes"]),
        total["total"]["pods"]["requested"],
        total["total"]["cpu_millis"]["requested"],
        total["total"]["gpus"]["requested"],
    )
    wanted = (nodes, pods, pods * 1000, sum(index % 3 for index in range(pods)))
    if found != wanted:
        raise BenchFailed(f"the audit found {found}, created were {wanted}")


def _create_workload(judge: Judge, index: int) -> None:
    where = f"namespaces/{namespace(index)}"
    made = workload(index)
    judge.post(f"/apis/apps/v1/{where}/deployments", made["deployments"])
    judge.post(f"/api/v1/{where}/services", made["services"])


def _create_event(judge: Judge, index: int) -> None:
    own = namespace(index)
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": own, "name": pod_name(index)}
    body = {
        "metadata": {"name": f"{pod_name(index)}.1", "namespace": own},
        "involvedObject": about,
        "type": "Warning",
        "reason": "Unhealthy",
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 503",
        "count": 3,
        "firstTimestamp": "2026-01-05T08:00:00Z",
        "lastTimestamp": "2026-01-05T08:10:00Z",
        "source": {"component": "kubelet"},
    }
    judge.post(f"/api/v1/namespaces/{own}/events", body)
