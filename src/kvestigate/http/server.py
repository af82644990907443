"""An HTTP/1.1 server on asyncio: `serve` a `Handler` until `close`."""

from __future__ import annotations

import asyncio
import socket
import ssl

from kvestigate.http import sockets
from kvestigate.http.limits import Limits
from kvestigate.http.listener import SecureListener, bind
from kvestigate.http.message import Handler
from kvestigate.http.service import RefusalAnswer, Service, Shared, plain_refusal

_BACKLOG = 1024

_FAREWELL = 0.5
"""Seconds for an idle client to confirm the end of its connection."""


class Server(Shared):
    """Accepts connections and owns them."""

    def __init__(
        self, handler: Handler, limits: Limits, refusal: RefusalAnswer = plain_refusal
    ) -> None:
        super().__init__(handler, limits, refusal)
        self._listener: asyncio.Server | SecureListener | None = None
        self.address = ("", 0)
        """Host and port of the first listening socket."""

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        if tls is None:
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_server(
                lambda: Service(self), host, port, backlog=_BACKLOG
            )
        else:
            self._listener = SecureListener(
                await bind(host, port, _BACKLOG),
                tls,
                lambda: Service(self),
                handshake_timeout=self.limits.handshake_timeout,
                shutdown_timeout=self.limits.write_timeout,
            )
        for listening in self._listener.sockets:
            sockets.tune(listening)
        name = self._listener.sockets[0].getsockname()
        self.address = (name[0], name[1])

    async def take(self, connection: socket.socket) -> None:
        """Serve a connection that somebody else has opened."""
        loop = asyncio.get_running_loop()
        await loop.connect_accepted_socket(lambda: Service(self), connection)

    async def close(self, grace: float = 10.0) -> None:
        """Stop accepting, finish what is being answered, end streams, close.

        What is not done after `grace` seconds is cut off.
        """
        self.closing = True
        if self._listener is not None:
            self._listener.close()
        tasks = {service.task for service in self.services}
        idle = {service for service in self.services if service.idle}
        for service in list(self.services):
            service.shut_down()
        if idle:
            leaving = {service.task for service in idle}
            await asyncio.wait(leaving, timeout=min(grace, _FAREWELL))
            for service in idle & self.services:
                service.abort()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for service in list(self.services):
                if service.task in late:
                    service.abort()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def serve(
    handler: Handler,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    refusal: RefusalAnswer = plain_refusal,
) -> Server:
    """A server that is listening; port 0 is one that the system chooses."""
    server = Server(handler, limits or Limits(), refusal)
    await server.listen(host, port, tls)
    return server
