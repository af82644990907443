"""While a long answer is made, others get theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import msgspec
import pytest

from kvestigate.wire.message import Response
from tests.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("method", "path", "accept", "count"),
    [
        ("GET", MAPS, "application/json", 300),
        ("GET", f"{MAPS}?labelSelector=a%3Db", "application/json", 1001),
        ("GET", MAPS, TABLE, 33),
        ("GET", MAPS, PARTIAL, 129),
        ("DELETE", MAPS, "application/json", 9),
        ("GET", "/snapshot", "application/json", 300),
    ],
    ids=["list", "search", "table", "metadata", "deletecollection", "snapshot"],
)
async def test_a_short_answer_does_not_wait_for_a_long_one(
    api: Api, method: str, path: str, accept: str, count: int
) -> None:
    for number in range(count):
        await api.post(MAPS, {"metadata": {"name": f"m-{number:03}"}})
    answered: list[str] = []

    async def ask(name: str, method: str, path: str, accept: str) -> None:
        assert (await api.call(method, path, accept=accept)).status == 200
        answered.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(ask("long", method, path, accept))
        group.create_task(ask("short", "GET", "/version", "application/json"))

    assert answered == ["short", "long"]


@pytest.mark.parametrize("count", [0, 1, 16, 17, 70])
async def test_tables_and_metadata_have_every_object_once(api: Api, count: int) -> None:
    names = [f"m-{number:03}" for number in range(count)]
    for name in names:
        await api.post(MAPS, {"metadata": {"name": name}})

    table = (await api.get(MAPS, accept=TABLE)).body
    partial = (await api.get(MAPS, accept=PARTIAL)).body

    assert [row["object"]["metadata"]["name"] for row in table["rows"] or ()] == names
    assert [item["metadata"]["name"] for item in partial["items"]] == names
    assert table["metadata"] == partial["metadata"]
    assert list(table) == ["kind", "apiVersion", "metadata", "columnDefinitions", "rows"]
    assert list(partial) == ["kind", "apiVersion", "metadata", "items"]


async def test_a_watch_shows_what_is_there_in_portions(api: Api) -> None:
    names = {f"m-{number:03}" for number in range(150)}
    for name in names:
        await api.post(MAPS, {"metadata": {"name": name}})

    response = await api.server.handle(api.request("GET", f"{MAPS}?watch=1&timeoutSeconds=1"))
    assert isinstance(response, Response)
    assert isinstance(response.body, AsyncGenerator)
    portions = [await anext(response.body) for _ in range(2)]
    await response.body.aclose()

    events = [msgspec.json.decode(line) for portion in portions for line in portion.splitlines()]
    assert {event["type"] for event in events} == {"ADDED"}
    assert {event["object"]["metadata"]["name"] for event in events} == names
    assert len(events) == len(names)
