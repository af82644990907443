"""An ASGI application on a socket, for the length of a block."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from kvestigate.errors import UsageError

_BACKLOG = 512
_GRACE_SECONDS = 5


def listening_socket(host: str, port: int, option: str) -> socket.socket:
    """A listening socket; UsageError that names the command's `option` if there can be none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint=f"choose another {option}, or port 0 for one that is free",
        ) from error


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def serving(application: Any, listening: socket.socket) -> AsyncIterator[str]:
    """Serve for the length of the block; yields the URL."""
    server = _server(application)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listening]), name="asgi server")
        try:
            yield url_of(listening)
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
    """Signals are for whoever serves to handle: uvicorn would send them to us once more."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(application: Any) -> uvicorn.Server:
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return _Server(config)
