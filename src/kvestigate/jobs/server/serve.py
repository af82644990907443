"""Runs the launcher's REST API until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import Api
from kvestigate.errors import UsageError
from kvestigate.http import asgi
from kvestigate.http.hosts import is_loopback
from kvestigate.jobs.running.keeping import Keeper
from kvestigate.jobs.server.api import application
from kvestigate.jobs.server.settings import Settings


def bound(host: str, port: int, settings: Settings | None = None) -> socket.socket:
    """A listening socket; only on loopback, unless users authenticate."""
    if not is_loopback(host) and not (settings is not None and settings.proves_users):
        raise UsageError(
            f"--host: {host} is reachable from other machines, and X-User is not authenticated",
            hint="give --config a file with tokens or oidc, or serve on 127.0.0.1",
        )
    return asgi.listening_socket(host, port, "--port")


@asynccontextmanager
async def serving(
    api: Api, listening: socket.socket, settings: Settings | None = None
) -> AsyncIterator[str]:
    """Serve, and keep the tasks, for the length of the block; yields the URL."""
    async with Supervisor("launcher") as parts:
        await parts.start("keeper", Keeper(api).run)
        async with asgi.serving(application(api, settings, kept=True), listening) as url:
            yield url
