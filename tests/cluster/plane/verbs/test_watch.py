"""What only time brings to a watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from kvestigate.http.message import Response
from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"


async def test_a_last_bookmark_comes_before_the_end(api: Api) -> None:
    """Whoever watches on does so from there, and not from the last event: long ago, maybe."""
    made = await api.post(MAPS, {"metadata": {"name": "a"}})
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "b"}})
    since = made.body["metadata"]["resourceVersion"]
    query = f"watch=1&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=3"

    response = await api.server.handle(api.request("GET", f"{MAPS}?{query}"))

    assert isinstance(response, Response)
    assert isinstance(response.body, AsyncGenerator)
    async with asyncio.timeout(10), aclosing(response.body) as lines:
        event = msgspec.json.decode(await anext(lines))
    assert event["type"] == "BOOKMARK"
    assert int(event["object"]["metadata"]["resourceVersion"]) == int(since) + 1
