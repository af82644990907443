"""An ASGI application on a socket, for the length of a block."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kvestigate.errors import UsageError

_BACKLOG = 512
_GRACE_SECONDS = 5
_HEAD_BYTES = 64 * 1024
_HEAD_SECONDS = 10.0


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


class _Protocol(H11Protocol):
    """A connection that has only so long, and so much, to say what it wants.

    uvicorn waits for the end of a header for ever, so a stranger could hold every file descriptor
    of the process; and its faster parser keeps headers of any length.
    """

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    @property
    def _is_asked(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        if self._is_asked:
            self._forget()
        elif self._late is None:
            self._late = self.loop.call_later(_HEAD_SECONDS, self._end)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _end(self) -> None:
        self._late = None
        is_ours = self.transport.get_protocol() is self  # it may have become a WebSocket
        if is_ours and not self._is_asked:
            self.transport.close()


def _server(application: Any) -> uvicorn.Server:
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        http=_Protocol,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        ws="websockets-sansio",
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return _Server(config)
