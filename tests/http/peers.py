"""Peers for the tests of `wire`: raw servers that say exactly what a test scripts."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable

from kvestigate.http.certificates import KeyPair
from kvestigate.http.pool import HttpClient

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def standard_tls(pair: KeyPair) -> ssl.SSLContext:
    """A server's, for peers that speak TLS as the standard library does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair.certificate + pair.key)
        file.flush()
        context.load_cert_chain(file.name)
    return context


class RawServer:
    """Runs `script` for each connection, and remembers how many there were."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.failures: list[BaseException] = []

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=tls)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._script(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except Exception as failure:  # noqa: BLE001  the test shows it at the end
            self.failures.append(failure)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def stop(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.wait_closed()
        assert self.failures == []


RawServers = Callable[..., Awaitable[RawServer]]
Clients = Callable[..., HttpClient]


async def request_head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def answering(*answers: bytes) -> Script:
    """A script that gives each request the next of `answers`, then closes."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await request_head(reader)
            writer.write(answer)
            await writer.drain()

    return script
