"""Runs the launcher's REST API until it is told to stop."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import Api
from kvestigate.errors import UsageError
from kvestigate.jobs.running.keeping import Keeper
from kvestigate.jobs.server.api import application
from kvestigate.jobs.server.settings import Settings

_BACKLOG = 512
_GRACE_SECONDS = 5


def bound(host: str, port: int, settings: Settings | None = None) -> socket.socket:
    """A listening socket; only on loopback, unless users authenticate."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback and not (settings is not None and settings.proves_users):
        raise UsageError(
            f"--host: {host} is reachable from other machines, and X-User is not authenticated",
            hint="give --config a file with tokens or oidc, or serve on 127.0.0.1",
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="choose another --port, or 0 for one that is free",
        ) from error


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


@asynccontextmanager
async def serving(
    api: Api, listening: socket.socket, settings: Settings | None = None
) -> AsyncIterator[str]:
    """Serve, and keep the tasks, for the length of the block; yields the URL."""
    async with Supervisor("launcher") as parts:
        await parts.start("keeper", Keeper(api).run)
        server = _server(api, settings)
        task = parts.spawn("server", server.serve(sockets=[listening]))
        try:
            yield url_of(listening)
        finally:
            server.should_exit = True
            await task


class _Server(uvicorn.Server):
    """Signals are for whoever serves to handle: uvicorn would send them to us once more."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _server(api: Api, settings: Settings | None) -> uvicorn.Server:
    config = uvicorn.Config(
        application(api, settings, kept=True),
        log_level="warning",
        access_log=False,
        ws="websockets-sansio",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return _Server(config)
