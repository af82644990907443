"""Peers and clients that end with the test."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import pytest

from kvestigate.http.pool import HttpClient
from tests.http.peers import Clients, RawServer, RawServers, Script


@pytest.fixture
async def raw_server() -> AsyncIterator[RawServers]:
    servers: list[RawServer] = []

    async def start(script: Script, tls: ssl.SSLContext | None = None) -> RawServer:
        server = RawServer(script)
        await server.start(tls)
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop()


@pytest.fixture
async def client_of() -> AsyncIterator[Clients]:
    """Makes clients of a loopback port, closed after the test."""
    clients: list[HttpClient] = []

    def make(port: int, **options: object) -> HttpClient:
        client = HttpClient(host="127.0.0.1", port=port, **options)  # type: ignore[arg-type]  # passed through
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.aclose()
