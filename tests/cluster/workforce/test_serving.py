"""A server as `plane serve` assembles it, workers and all."""

from __future__ import annotations

from pathlib import Path

from kvestigate.client.api import Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, Serving, serving
from kvestigate.cluster.workforce.registry import start_workers
from tests.cluster.workforce.conftest import DEPLOYMENTS, PODS, deployment, names


def client(served: Serving, base: str = "") -> Api:
    headers = [("authorization", f"Bearer {served.token}")]
    return Api(InProcessTransport(served.handler, base_path=base, headers=headers))


async def test_a_served_plane_is_worked_on(tmp_path: Path) -> None:
    workers = start_workers(controllers=True, nodes=2)
    async with serving(ServeOptions(tmp_path, Listen(port=0), workers=workers)) as served:
        api = client(served, "/clusters/a/control-plane")
        version = (await api.list(PODS)).metadata.resource_version
        await api.create(DEPLOYMENTS, deployment("web", 2))
        running: set[str] = set()
        async with api.watch(PODS, resource_version=version) as events:
            async for event in events:
                if event.object["status"]["phase"] == "Running":
                    running.add(event.object["spec"]["nodeName"])
                if len(running) == 2:
                    break
        assert running == {"node-1", "node-2"}


async def test_a_virtual_plane_is_stepped_over_http(tmp_path: Path) -> None:
    workers = start_workers(controllers=False, nodes=1)
    options = ServeOptions(tmp_path, Listen(port=0), memory=True, workers=workers)
    async with serving(options) as served:
        root, api = client(served), client(served, "/clusters/lab/control-plane")
        await root.request(
            "POST", "/clusters", body=b'{"id": "lab", "clock": "virtual", "seed": 7}'
        )
        await api.create(DEPLOYMENTS, deployment("web", 2))
        assert await names(api, PODS) == []
        await api.request("POST", "/step", body=b'{"untilIdle": true}')
        assert len(await names(api, PODS, phase="Running")) == 2
