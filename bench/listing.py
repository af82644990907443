"""Reading every pod of a cluster, typed, beside the official client and kubectl."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from bench.frame import Contender, Result, race
from bench.population import populate
from bench.settings import Settings
from bench.versions import versions
from tests.upstream import binaries
from tests.upstream.cluster import UpstreamCluster


def run(settings: Settings) -> Result:
    with (
        tempfile.TemporaryDirectory(prefix="kvestigate-bench-") as directory,
        UpstreamCluster(binaries.find(), Path(directory)) as cluster,
    ):
        size = _fill(cluster, settings)
        rows = race(_contenders(cluster, Path(directory)), settings.runs, settings.progress)
    method = (
        f"all {settings.pods} pods ({size / settings.pods / 1000:.2f} KB each, {size / 1e6:.0f} MB "
        f"of JSON) beside {settings.nodes} nodes on a real kube-apiserver; "
        f"median of {settings.runs} interleaved runs"
    )
    return Result("list", method, versions("kvestigate", "msgspec", "kubernetes"), rows)


def _fill(cluster: UpstreamCluster, settings: Settings) -> int:
    """Create everything; the bytes of one full list."""
    settings.progress(f"creating {settings.nodes} nodes and {settings.pods} pods")
    started = time.monotonic()
    populate(cluster, nodes=settings.nodes, pods=settings.pods)
    settings.progress(f"created in {time.monotonic() - started:.0f} s")
    with cluster.judge() as judge:
        return len(judge.exchange("GET", "/api/v1/pods"))


def _contenders(cluster: UpstreamCluster, directory: Path) -> list[Contender]:
    config = str(cluster.admin_kubeconfig())
    kubectl = [cluster.binaries.path("kubectl"), f"--kubeconfig={config}"]
    # kubectl keeps what it discovers in HOME: its own, so that ours stays as it is.
    environment = os.environ | {"HOME": str(directory)}

    def reader(title: str, name: str) -> Contender:
        command = [sys.executable, "-m", "bench.readers", name, config]
        return Contender(title, command, answers=True)

    return [
        reader("kvestigate, typed, paged", "kvestigate"),
        Contender("kubectl get --raw", [*kubectl, "get", "--raw", "/api/v1/pods"], environment),
        reader("official client, typed", "official"),
        reader("official client, typed, paged", "official-paged"),
        Contender("kubectl get -o json", [*kubectl, "get", "pods", "-A", "-ojson"], environment),
    ]
