"""Cyberspaces to test on: documents, and gateways in front of an API server in process."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kvestigate import catalog
from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, serving
from kvestigate.cybernet.gateway import Gateway
from kvestigate.cybernet.http import listening
from kvestigate.cybernet.loading import Loaded
from kvestigate.cybernet.registry import offered
from kvestigate.cybernet.serving import gateway
from kvestigate.cybernet.spec import HttpListen, read_cyberspace
from kvestigate.cybernet.tokens import digest

OPERATIONS = catalog.operations()

Document = dict[str, Any]
TOKENS = {"ada": "token-of-ada", "bob": "token-of-bob"}

RESEARCH: Document = {
    "apiVersion": "kvestigate.cybernet/v1",
    "kind": "Cyberspace",
    "metadata": {"name": "research-agents", "description": "For research."},
    "listen": {"http": {"address": "127.0.0.1:0"}, "mcp": {"stdio": True}},
    "auth": {
        "tokens": [
            {"identity": name, "sha256": digest(token), "tags": ["gpu"]}
            for name, token in TOKENS.items()
        ]
    },
    "operations": {"allow": ["report.run", "report.list", "pods"]},
    "constraints": {
        "hosts": {
            "allow_names": ["node-1", "node-2"],
            "require": {
                "min_free_gpu": 4,
                "min_free_cpu_cores": 80,
                "min_free_memory": "800Gi",
            },
        },
        "workspace": {
            "name_pattern": "^agent-[a-z0-9][a-z0-9-]{0,30}$",
            "storage": {"allowed_modes": ["all-tmpfs", "hybrid"], "max_tmpfs_size": "500Gi"},
            "gpu": {"max_per_workspace": 4, "cordon_node_forbidden": True},
        },
    },
    "quotas": {
        "max_active_workspaces_per_identity": 3,
        "max_total_active_workspaces": 10,
        "max_total_active_gpu": 32,
        "max_total_active_memory": "5Ti",
    },
    "audit": {"path": "/var/log/cybernet/research-agents.jsonl", "include_denials": True},
}


def changed(path: str, value: Any, document: Document = RESEARCH) -> Document:
    """The document with another value at `a.b.0.c`; None removes it."""
    found = copy.deepcopy(document)
    *way, last = path.split(".")
    inner: Any = found
    for step in way:
        inner = inner[int(step)] if step.isdecimal() else inner.setdefault(step, {})
    if value is None:
        del inner[last]
    else:
        inner[int(last) if last.isdecimal() else last] = value
    return found


@pytest.fixture
def document(tmp_path: Path) -> Document:
    """A cyberspace that is recorded in a file of the test's own."""
    return changed("audit.path", str(tmp_path / "audit.jsonl"))


def recorded(document: Document) -> list[dict[str, Any]]:
    """The outcomes of its requests, oldest first."""
    return [it for it in audited(document) if it["stage"] == "outcome"]


def audited(document: Document) -> list[dict[str, Any]]:
    """All lines of its audit log."""
    return [json.loads(it) for it in Path(document["audit"]["path"]).read_text().splitlines()]


def load(document: Document) -> Loaded:
    space = read_cyberspace(document)
    return Loaded(space, offered(space.allow, OPERATIONS))


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """An API server without nodes, in a thread of its own."""
    started: Future[tuple[Path, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stopped = asyncio.Event()
        options = ServeOptions(tmp_path_factory.mktemp("plane"), Listen(port=0), memory=True)
        async with serving(options) as server:
            started.set_result((server.kubeconfig, asyncio.get_running_loop(), stopped))
            await stopped.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    kubeconfig, loop, stopped = started.result(timeout=30)
    yield resolve(AccessOptions(kubeconfig=str(kubeconfig)), {}, None)
    loop.call_soon_threadsafe(stopped.set)
    thread.join(timeout=30)


@dataclass
class Front:
    """A gateway and the way to it."""

    http: httpx2.AsyncClient
    gateway: Gateway
    port: int

    async def call(
        self, operation: str, parameters: Any = None, token: str = TOKENS["ada"]
    ) -> httpx2.Response:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        path = f"/api/v1/op/{operation}"
        return await self.http.post(path, json=parameters or {}, headers=headers)


@asynccontextmanager
async def fronted(document: Document, access: Access) -> AsyncIterator[Front]:
    async with fronted_by(load(document), access) as front:
        yield front


@asynccontextmanager
async def fronted_by(loaded: Loaded, access: Access) -> AsyncIterator[Front]:
    async with (
        gateway(loaded, access) as opened,
        await listening(opened, HttpListen("127.0.0.1", 0)) as server,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{server.address[1]}", timeout=120) as http,
    ):
        yield Front(http, opened, server.address[1])


@pytest.fixture
async def front(document: Document, access: Access) -> AsyncIterator[Front]:
    async with fronted(document, access) as found:
        yield found
