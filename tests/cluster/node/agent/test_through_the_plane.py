"""From our client through the plane to a node and back, with certificates all the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from kvestigate.aio.clock import WALL
from kvestigate.client.api import PODS, Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.node.agent.fleet import Fleet
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.gpu.model import Load, gpu_uuid, node_gpus
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.hosts.interface import Host
from kvestigate.cluster.node.hosts.simulated import SimulatedHost
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.egress.reach import Backends
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.request_info import ROOT
from kvestigate.cluster.plane.model.user import MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.http.certificates import CertificateAuthority
from kvestigate.http.tls import client_context
from kvestigate.snapshot.exporters import GpuExporters
from kvestigate.snapshot.prometheus import samples
from tests.cluster.node.conftest import LONG, PYTHON, SHOUT, is_ready, pod, says, shell, until
from tests.cluster.node.kubelet import Kubelet
from tests.static_tokens import StaticTokens

GPU = "nvidia.com/gpu"


def _with_gpu(name: str) -> NodeConfig:
    return NodeConfig(name, gpus=node_gpus(name, 1, "L4", (Load.BUSY,)))


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[tuple[Api, Fleet]]:
    now = datetime.now(UTC)
    authority = CertificateAuthority.create("test", now=now)
    ours = authority.issue_client("plane", [MASTERS], now=now)
    trust = client_context(
        ca=authority.pair.certificate, certificate=ours.certificate, key=ours.key
    )
    backends = Backends(lambda plane: trust)
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("admin"): User("admin", (MASTERS,))})
        server = ApiServer(store, tokens, AllowAll(), backends=backends)
        transport = InProcessTransport(server.handle, headers=[("authorization", "Bearer admin")])
        api = Api(transport)
        nodes: list[tuple[NodeConfig, Host]] = [
            (_with_gpu("here"), DirectoryHost(tmp_path / "here", now=WALL.now)),
            (_with_gpu("there"), SimulatedHost(WALL)),
        ]
        serving = authority.issue_server("system:node", ["127.0.0.1"], now=now)
        async with Fleet(
            api,
            nodes,
            serving=serving,
            client_ca=authority.pair.certificate,
            listening=partial(backends.register, ROOT),
        ) as running:
            await api.create(PODS, pod("p", shell("echo up; cat", stdin=True)))
            await until(api, "p", is_ready)
            yield api, running
        await transport.aclose()
        await backends.aclose()


async def test_logs_exec_and_ports_reach_the_pod(fleet: tuple[Api, Fleet]) -> None:
    api, running = fleet
    async with api.exec("p", ["sh", "-c", "cat; exit 3"], stdin=True) as session:
        done = await session.communicate(b"through\n")
    assert (done.exit_code, done.stdout) == (3, b"through\n")
    assert [line async for line in api.logs("p")] == [b"up"]

    await api.create(PODS, pod("shouter", {"command": [PYTHON, "-c", SHOUT]}))
    await until(api, "shouter", is_ready)
    await says(running.agents[0], "shouter", "up")
    async with asyncio.timeout(LONG):
        async with api.port_forward("shouter", 8080) as stream:
            await stream.write(b"hello\n")
            assert await stream.read() == b"HELLO\n"


async def test_gpus_are_measured_on_nodes_of_any_kind(fleet: tuple[Api, Fleet]) -> None:
    api, _ = fleet
    wanted = {"image": "a", "command": ["sleep", "3600"], "resources": {"limits": {GPU: "1"}}}
    probe = {"httpGet": {"path": "/health", "port": 9400}}
    exporter = {"image": "nvcr.io/nvidia/k8s/dcgm-exporter:4", "readinessProbe": probe}
    for node in ("here", "there"):
        body = pod(f"exporter-{node}", exporter, nodeName=node)
        body["metadata"]["labels"] = {"app": "nvidia-dcgm-exporter"}
        for each in (pod(f"train-{node}", wanted, nodeName=node), body):
            await api.create(PODS, each)
            await until(api, each["metadata"]["name"], is_ready)
    seen = (await GpuExporters().read(api, "", None)).items
    assert {(it.node, it.uuid, it.pod, it.utilization > 80) for it in seen} == {
        (node, gpu_uuid(node, 0), f"train-{node}", True) for node in ("here", "there")
    }


async def test_model_servers_are_measured_on_nodes_of_any_kind(fleet: tuple[Api, Fleet]) -> None:
    api, _ = fleet
    probe = {"httpGet": {"path": "/health", "port": 8000}}
    server = {
        "image": "vllm/vllm-openai:v0.11.0",
        "args": ["--model", 'a"b'],
        "readinessProbe": probe,
    }
    for node, served in (("here", "7"), ("there", "8")):
        env = [{"name": "SIMULATE_SERVED", "value": served}]
        await api.create(PODS, pod(f"chat-{node}", {**server, "env": env}, nodeName=node))
        await until(api, f"chat-{node}", is_ready)
        path = f"/api/v1/namespaces/default/pods/chat-{node}:8000/proxy/metrics"
        said = await api.request("GET", path, accept="text/plain")
        [sample] = samples(said, "vllm:request_success_total")
        assert (sample.value, sample.labels["model_name"]) == (int(served), 'a"b')


async def test_a_caller_without_a_certificate_is_refused(fleet: tuple[Api, Fleet]) -> None:
    agent, *_ = fleet[1].agents
    async with Kubelet(agent) as stranger:
        assert (await stranger.get("/pods"))[0] == 401
