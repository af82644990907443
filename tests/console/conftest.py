"""A console over an API server in this process, and browsers that are more or less honest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.client.connect import connect
from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, serving
from kvestigate.console.contexts import Contexts
from kvestigate.console.gate import App
from kvestigate.console.server import application
from kvestigate.console.sessions import Sessions
from tests.bed import Bed

HOST = "127.0.0.1:8080"
CONTEXT = "test"


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """An API server without controllers and nodes, in a thread of its own."""
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


@pytest.fixture
async def bed(access: Access) -> AsyncIterator[Bed]:
    async with connect(access) as api:
        yield Bed(api)


@dataclass
class Console:
    """The console, and the ways to it."""

    app: App
    sessions: Sessions
    announced: list[str] = field(default_factory=list)

    def browser(self, **headers: str) -> httpx2.AsyncClient:
        """One that is not signed in."""
        transport = httpx2.ASGITransport(self.app, client=("127.0.0.1", 1))
        return httpx2.AsyncClient(
            transport=transport, base_url=f"http://{HOST}", headers={"host": HOST, **headers}
        )

    async def signed_in(self, **headers: str) -> Visitor:
        browser = self.browser(**headers)
        answer = await browser.get("/sign-in", params={"token": self.sessions.token})
        assert answer.status_code == 200
        return Visitor(browser)


@dataclass
class Visitor:
    """Somebody to whom the operator gave the address."""

    http: httpx2.AsyncClient

    async def get(self, path: str, **parameters: str) -> str:
        answer = await self.http.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def post(self, path: str, **fields: str) -> httpx2.Response:
        """As a form of ours is sent."""
        token = hidden(await self.get(path), "form-token")
        return await self.http.post(
            path, data={"form-token": token, **fields}, headers={"origin": f"http://{HOST}"}
        )


def hidden(page: str, name: str) -> str:
    _, _, rest = page.partition(f'name="{name}" value="')
    return rest.partition('"')[0]


@dataclass
class Consoles:
    access: Access
    tasks: Supervisor
    stack: AsyncExitStack

    def make(self, *, allow_writes: bool = False, **more: Any) -> Console:
        announced: list[str] = []
        sessions = Sessions(announced.append)
        contexts = Contexts(
            [CONTEXT], CONTEXT, AccessOptions(), lambda _: self.access, self.tasks, self.stack
        )
        app = application(contexts, sessions, allow_writes=allow_writes, **more)
        return Console(app, sessions, announced)


@pytest.fixture
async def consoles(access: Access) -> AsyncIterator[Consoles]:
    async with AsyncExitStack() as stack, Supervisor("console") as tasks:
        yield Consoles(access, tasks, stack)


@pytest.fixture
def console(consoles: Consoles) -> Console:
    return consoles.make()


@pytest.fixture
async def visitor(console: Console) -> Visitor:
    return await console.signed_in()
