"""metrics.k8s.io of an embedded cluster."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import msgspec
import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.cluster.assembly.directory import Shape
from kvestigate.errors import NotFound
from kvestigate.kube import builtins
from tests.cluster.assembly.conftest import Object, all_running, cluster, until_pods
from tests.upstream import binaries

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def pod(name: str, cpu: str, memory: str, **labels: str) -> Object:
    env = [{"name": "SIMULATE_CPU", "value": cpu}, {"name": "SIMULATE_MEMORY", "value": memory}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "x", "env": env}]},
    }


async def _populate(api: Api) -> None:
    await api.create(PODS, pod("web", "500m", "1Gi", app="web"))
    await api.create(PODS, pod("db", "2", "2Gi", app="db"))
    await until_pods(api, all_running(2))


async def test_nodes_and_pods_tell_what_they_use(tmp_path: Path) -> None:
    async with cluster(tmp_path, Shape(nodes=2, host="simulated")) as api:
        await _populate(api)
        pods = await api.list(builtins.POD_METRICS, type=Object)
        assert sorted(it["metadata"]["name"] for it in pods.items) == ["db", "web"]

        only = Selection("default", labels="app=web")
        (web,) = (await api.list(builtins.POD_METRICS, only, type=Object)).items
        assert web["containers"][0]["usage"]["memory"] == "1048576Ki"
        assert web["metadata"]["labels"] == {"app": "web"}
        assert not (await api.list(builtins.POD_METRICS, Selection("kube-system"))).items

        one = await api.get(builtins.POD_METRICS, "db", type=Object)
        assert one["containers"][0]["usage"]["memory"] == "2097152Ki"
        with pytest.raises(NotFound, match=r'podmetrics.metrics.k8s.io "default/nope" not found'):
            await api.get(builtins.POD_METRICS, "nope")

        nodes = await api.list(builtins.NODE_METRICS, type=Object)
        memory = [int(node["usage"]["memory"].removesuffix("Ki")) for node in nodes.items]
        assert sum(memory) == 3 * 1024**2
        with pytest.raises(NotFound, match=r'nodemetrics.metrics.k8s.io "nope" not found'):
            await api.get(builtins.NODE_METRICS, "nope")

        table = msgspec.json.decode(
            await api.request("GET", "/apis/metrics.k8s.io/v1beta1/nodes", accept=TABLE)
        )
        assert [it["name"] for it in table["columnDefinitions"]] == [
            "Name", "cpu", "memory", "Window",
        ]  # fmt: skip
        assert [row["cells"][0] for row in table["rows"]] == ["node-1", "node-2"]


@pytest.fixture(scope="module")
def kubectl() -> str:
    return binaries.find().path("kubectl")


@pytest.mark.real
async def test_kubectl_top_shows_them(tmp_path: Path, kubectl: str) -> None:
    async with cluster(tmp_path, Shape(nodes=1, host="simulated")) as api:
        await _populate(api)

        def ask(*words: str) -> list[list[str]]:
            config = tmp_path / "test" / "plane" / "admin.kubeconfig"
            flags = [f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}"]
            done = subprocess.run(
                [kubectl, *flags, *words], capture_output=True, text=True, timeout=30, check=True
            )
            return [line.split() for line in done.stdout.splitlines()]

        shown = await asyncio.to_thread(ask, "top", "pods", "--sort-by=memory", "--no-headers")
        assert [(row[0], row[2]) for row in shown] == [("db", "2048Mi"), ("web", "1024Mi")]
        shown = await asyncio.to_thread(ask, "top", "pods", "-l", "app=db", "--containers")
        assert shown[1][:2] == ["db", "main"]
        shown = await asyncio.to_thread(ask, "top", "nodes", "--no-headers")
        assert (shown[0][0], shown[0][3]) == ("node-1", "3072Mi")
        shown = await asyncio.to_thread(ask, "get", "podmetrics")
        assert shown[0] == ["NAME", "CPU", "MEMORY", "WINDOW"]
        shown = await asyncio.to_thread(ask, "get", "apiservices", "v1beta1.metrics.k8s.io")
        assert shown[1][:3] == ["v1beta1.metrics.k8s.io", "Local", "True"]
