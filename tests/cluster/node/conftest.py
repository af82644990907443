"""Nodes to run pods on: a plane in this process, and each kind of host that is real."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.aio.clock import WALL, Clock
from kvestigate.client.api import PODS, Api
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.client.recorder import EVENTS
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.agent.fleet import Fleet
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.cluster.node.hosts.interface import Host
from kvestigate.cluster.node.hosts.logs import LogQuery
from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.user import MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.node.kubelet import Kubelet
from tests.static_tokens import StaticTokens

LONG = 30.0
"""Seconds after which something that should happen never will."""

PYTHON = os.path.realpath(sys.executable)
"""What pods run it with: it is there for every user who runs these tests."""

HOSTS = ["directory", *(["namespace"] if sys.platform == "linux" else [])]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be others")

MakeHost = Callable[[str], Host]
Object = dict[str, Any]


@asynccontextmanager
async def lone_agent(
    api: Api, host: Host, config: NodeConfig, *, clock: Clock = WALL
) -> AsyncIterator[Agent]:
    """The agent of a fleet of one node."""
    async with Fleet(api, [(config, host)], clock=clock) as fleet:
        (agent,) = fleet.agents
        yield agent


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """A new plane, spoken to as its administrator."""
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest("admin"): User("admin", (MASTERS,))})
        server = ApiServer(store, tokens, AllowAll())
        transport = InProcessTransport(server.handle, headers=[("authorization", "Bearer admin")])
        yield Api(transport)
        await transport.aclose()


def new_host(kind: str, root: Path, name: str) -> Host:
    if kind == "directory":
        return DirectoryHost(root / name, now=time.time)
    from kvestigate.cluster.node.hosts.namespace import NamespaceHost

    return NamespaceHost(root / name, name, now=time.time, shared=[str(root.parent / "shared")])


@pytest.fixture(params=HOSTS)
def make_host(request: pytest.FixtureRequest, tmp_path: Path) -> MakeHost:
    """Hosts of one kind, by the node's name; the same name is the same node again."""
    (tmp_path / "shared").mkdir()
    for above in (tmp_path, *tmp_path.parents):  # a way for the users of containers
        if not above.stat().st_mode & 0o001:
            above.chmod(0o711)
    return lambda name: new_host(request.param, tmp_path / "nodes", name)


def pod(name: str, *containers: Object, **spec: Any) -> Object:
    """A pod on the node `here`; a container is named `main` and says what it runs."""
    named = [{"name": "main", "image": "busybox", **each} for each in containers]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": "here",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 5,
            "containers": named,
            **spec,
        },
    }


SHOUT = """
import socket
server = socket.create_server(("", 8080))
print("up", flush=True)
while True:
    with server.accept()[0] as peer:
        peer.sendall(peer.recv(100).upper())
"""


def shell(script: str, **more: Any) -> Object:
    return {"command": ["sh", "-c", script], **more}


async def until(
    api: Api, name: str, reached: Callable[[Object], bool], *, of: str = "default"
) -> Object:
    """The pod, once it is as wanted."""
    async with asyncio.timeout(LONG), api.watch(PODS) as events:
        async for event in events:
            metadata = event.object["metadata"]
            if (metadata["namespace"], metadata["name"]) == (of, name) and reached(event.object):
                return event.object
    raise AssertionError(f"the watch ended before {name} got there")


async def until_gone(api: Api, name: str) -> None:
    async with asyncio.timeout(LONG), api.watch(PODS) as events:
        try:
            await api.get(PODS, name)
        except errors.NotFound:
            return
        async for event in events:
            if event.type == "DELETED" and event.object["metadata"]["name"] == name:
                return


async def says(agent: Agent, name: str, text: str) -> None:
    """Wait until a pod's output has `text` in it."""
    (worker,) = [one for one in agent.workers.values() if one.key.name == name]
    log = worker.log("main", previous=False)
    assert log is not None
    async with asyncio.timeout(LONG):
        async for piece in log.read(LogQuery(follow=True)):
            if text in piece.decode():
                return


def in_phase(*phases: str) -> Callable[[Object], bool]:
    return lambda found: found.get("status", {}).get("phase") in phases


def is_ready(found: Object) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def state_of(found: Object, container: str = "main") -> Object:
    statuses = [
        *found.get("status", {}).get("initContainerStatuses", []),
        *found.get("status", {}).get("containerStatuses", []),
    ]
    state: Object = next((one["state"] for one in statuses if one["name"] == container), {})
    return state


@pytest.fixture
async def agent(api: Api, make_host: MakeHost) -> AsyncIterator[Agent]:
    async with lone_agent(api, make_host("here"), NodeConfig("here")) as agent:
        yield agent


async def ended(api: Api, *containers: Object, **spec: Any) -> Object:
    """A pod that was run to its end."""
    await api.create(PODS, pod("p", *containers, restartPolicy="Never", **spec))
    return await until(api, "p", in_phase("Succeeded", "Failed"))


async def logs(agent: Agent, name: str, container: str = "main") -> str:
    async with Kubelet(agent) as kubelet:
        return await kubelet.text(f"/containerLogs/default/{name}/{container}")


async def told(api: Api, reason: str, begins: str = "") -> str:
    """The message of the first event of a kind."""
    async with asyncio.timeout(LONG), api.watch(EVENTS) as events:
        async for event in events:
            message = str(event.object["message"])
            if event.object["reason"] == reason and message.startswith(begins):
                return message
    raise AssertionError("the watch ended")
