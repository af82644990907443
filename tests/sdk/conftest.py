"""A server as users start it, in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from kvestigate.cluster.plane.front.serving import Listen, ServeOptions, Serving, serving
from kvestigate.cluster.workforce.registry import start_workers
from kvestigate_client import PlaneClient
from kvestigate_client.failures import NotFound


async def _serve(
    data: Path, started: Future[tuple[Serving, asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    stopped = asyncio.Event()
    options = ServeOptions(
        data, Listen(port=0), memory=True, workers=start_workers(controllers=False, nodes=2)
    )
    async with serving(options) as server:
        started.set_result((server, asyncio.get_running_loop(), stopped))
        await stopped.wait()


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    started: Future[tuple[Serving, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
    data = tmp_path_factory.mktemp("planes")
    thread = threading.Thread(target=lambda: asyncio.run(_serve(data, started)))
    thread.start()
    server, loop, stopped = started.result(timeout=30)
    yield server.kubeconfig
    loop.call_soon_threadsafe(stopped.set)
    thread.join(timeout=30)


@pytest.fixture
def client(kubeconfig: Path) -> Iterator[PlaneClient]:
    """Leaves no planes behind."""
    with PlaneClient.from_kubeconfig(kubeconfig) as made:
        yield made
        for name in made.fleets():
            with contextlib.suppress(NotFound):  # it was about to go
                made.fleet(name).delete()
        for plane in made.planes():
            if plane != "root":
                with contextlib.suppress(NotFound):
                    made.delete(plane)
