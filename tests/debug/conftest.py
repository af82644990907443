"""A small API server on loopback, and the access to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from kvestigate.client.access import Access
from kvestigate.client.auth.static import Anonymous
from kvestigate.client.endpoint import parse_endpoint
from kvestigate.http.message import Handler, Response
from kvestigate.http.server import serve

Reach = Callable[[Handler], Awaitable[Access]]


@pytest.fixture
async def reach() -> AsyncIterator[Reach]:
    """`await reach(handler)` serves it for the length of the test."""
    async with AsyncExitStack() as stack:

        async def call(handler: Handler) -> Access:
            server = await stack.enter_async_context(await serve(handler))
            host, port = server.address
            return Access(parse_endpoint(f"http://{host}:{port}"), Anonymous(), namespace="shop")

        yield call


def as_json(body: object, status: int = 200) -> Response:
    return Response(status, [("content-type", "application/json")], json.dumps(body).encode())
