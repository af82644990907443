"""Running the real command line in process, against servers on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click
import pytest

from kvestigate.cli.main import KVESTIGATE_PROGRAM, run
from kvestigate.http.message import Handler, Request, Response
from kvestigate.http.server import serve


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    out: str
    err: str


Invoke = Callable[..., Outcome]

MEANT = ("--apply", "--i-understand-this-modifies-cluster")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and working directory: nothing of the developer's own is in reach."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Call a program with arguments: `invoke("debug", "context")`."""

    def call(*args: str, root: click.Command = KVESTIGATE_PROGRAM) -> Outcome:
        code = run(root, args)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


class Loopback:
    """A server on a loopback port, in a thread beside the program under test."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(handler, tls)))
        self._thread.start()
        self._loop, self._stop, self.port = self._started.result(timeout=10)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"

    async def _serve(self, handler: Handler, tls: ssl.SSLContext | None) -> None:
        stop = asyncio.Event()
        server = await serve(handler, tls=tls)
        self._started.set_result((asyncio.get_running_loop(), stop, server.address[1]))
        await stop.wait()
        await server.close(grace=0)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


Start = Callable[..., Loopback]


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(handler, tls)` gives a running server that ends with the test."""
    with contextlib.ExitStack() as stack:

        def call(handler: Handler, tls: ssl.SSLContext | None = None) -> Loopback:
            server = Loopback(handler, tls)
            stack.callback(server.close)
            return server

        yield call


def answering(status: int, body: object, content_type: str = "application/json") -> Handler:
    """A handler that says the same to everything."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def handle(request: Request) -> Response:
        return Response(status, [("content-type", content_type)], data)

    return handle


def kubeconfig(server: str, *, user: object = None, namespace: str = "", **cluster: object) -> str:
    """A kubeconfig with one context; JSON is YAML too."""
    context = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
    return json.dumps(  # indented, so that line and column mean something
        {
            "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [{"name": "prod", "context": context}],
            "current-context": "prod",
        },
        indent=2,
    )


PROGRAM = "from kvestigate.cli.main import kvestigate; kvestigate()"


class Served:
    """A server as users start it, in a process of its own."""

    def __init__(self, data: Path) -> None:
        self.data = data
        command = ["plane", "serve", "--listen", "127.0.0.1:0", "--memory", "--data", str(data)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *command], stdout=subprocess.PIPE, text=True
        )
        output: IO[str] | None = self.process.stdout
        assert output is not None
        self.said = [output.readline() for _ in range(3)]  # the handshake: it is listening now

    def close(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=20)
        return self.process.returncode


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("planes"))
    yield server
    server.close()
