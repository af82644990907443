"""Both transports: what is promised of one holds for the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from kvestigate.client.access import Access
from kvestigate.client.auth.static import Anonymous
from kvestigate.client.endpoint import Endpoint
from kvestigate.client.http import HttpTransport
from kvestigate.client.inprocess import InProcessTransport
from kvestigate.client.transport import Transport
from kvestigate.http.message import Handler
from kvestigate.http.server import serve
from tests.client.scripted import OpenTransport


@pytest.fixture(params=["http", "in-process"])
async def connected(request: pytest.FixtureRequest) -> AsyncIterator[OpenTransport]:
    """`await connected(handler)` is a transport to it."""
    async with AsyncExitStack() as stack:

        async def over_http(handler: Handler) -> Transport:
            server = await serve(handler)
            stack.push_async_callback(server.close, 0.0)
            host, port = server.address
            transport = HttpTransport(Access(Endpoint("http", host, port), Anonymous()))
            stack.push_async_callback(transport.aclose)
            return transport

        async def in_process(handler: Handler) -> Transport:
            transport = InProcessTransport(handler)
            stack.push_async_callback(transport.aclose)
            return transport

        yield over_http if request.param == "http" else in_process
