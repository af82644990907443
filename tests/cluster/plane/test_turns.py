"""While a long answer is made, others get theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.request.selection import MOST_REQUIREMENTS
from kvestigate.http.message import Response
from tests.cluster.plane.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

A_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
SEARCH = ",".join(f"label-{number}%21%3Db" for number in range(MOST_REQUIREMENTS))
WIDE = {f"key-{number}": "x" for number in range(20_000)}


@pytest.mark.parametrize(
    ("method", "path", "accept", "count"),
    [
        ("GET", MAPS, "application/json", 300),
        ("GET", f"{MAPS}?labelSelector=a%3Db", "application/json", 1001),
        ("GET", f"{MAPS}?labelSelector={SEARCH}", "application/json", 40),
        ("GET", MAPS, TABLE, 33),
        ("GET", MAPS, PARTIAL, 129),
        ("GET", MAPS, "application/yaml", 300),
        ("DELETE", MAPS, "application/json", 40),
        ("GET", "/snapshot", "application/json", 300),
        ("GET", "/events", "application/json", 33),
        ("GET", "/events", "application/x-ndjson", 33),
        ("GET", "/diff?from=checkpoint:start", "application/json", 40),
    ],
    ids=[
        "list",
        "search",
        "search for much",
        "table",
        "metadata",
        "yaml",
        "deletecollection",
        "snapshot",
        "events",
        "lines of events",
        "diff",
    ],
)
async def test_a_short_answer_does_not_wait_for_a_long_one(
    api: Api, method: str, path: str, accept: str, count: int
) -> None:
    await api.post("/checkpoints", {"name": "start"})
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


@pytest.mark.parametrize(
    ("method", "path", "body", "media"),
    [
        ("POST", MAPS, {"metadata": {"name": "wide"}, "data": WIDE}, "json"),
        ("POST", MAPS, {"metadata": {"name": "bad"}, "data": {**WIDE, "/": ""}}, "json"),
        ("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}, "data": WIDE}, "json"),
        ("PATCH", f"{MAPS}/a", {"data": WIDE}, "merge-patch+json"),
        ("PATCH", f"{MAPS}/a", {**A_MAP, "data": WIDE}, "apply-patch+yaml"),
    ],
    ids=["create", "refused", "update", "patch", "apply"],
)
async def test_nor_for_a_large_request_of_another_plane(
    api: Api, method: str, path: str, body: Any, media: str
) -> None:
    other = Api(api.server, "/clusters/other/control-plane")
    await api.post("/clusters", {"id": "other"})
    await other.post(MAPS, {"metadata": {"name": "a"}})
    answered: list[str] = []

    async def write() -> None:
        answer = await other.call(
            method, f"{path}?fieldManager=test", body, content_type=f"application/{media}"
        )
        assert answer.status in (200, 201, 422)
        answered.append("long")

    async def read() -> None:
        assert (await api.get("/version")).status == 200
        answered.append("short")

    await api.get("/version")
    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        group.create_task(read())

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


@pytest.mark.parametrize(
    ("accept", "selector"),
    [("application/json", ""), ("application/json", "&labelSelector=a!%3Db"), (TABLE, "")],
    ids=["all", "selected", "table"],
)
async def test_a_watch_shows_what_has_happened_in_portions(
    api: Api, accept: str, selector: str
) -> None:
    since = (await api.get(MAPS)).body["metadata"]["resourceVersion"]
    names = [f"m-{number:03}" for number in range(250)]
    for name in names:
        await api.post(MAPS, {"metadata": {"name": name}})
    path = f"{MAPS}?watch=1&resourceVersion={since}{selector}"

    response = await api.server.handle(api.request("GET", path, headers={"accept": accept}))
    assert isinstance(response, Response)
    assert isinstance(response.body, AsyncGenerator)
    events: list[Any] = []
    portions = 0
    while len(events) < len(names):
        events += map(msgspec.json.decode, (await anext(response.body)).splitlines())
        portions += 1
    await response.body.aclose()

    shown = [event["object"] for event in events]
    if accept == TABLE:
        shown = [table["rows"][0]["object"] for table in shown]
    assert [obj["metadata"]["name"] for obj in shown] == names
    assert portions > 2
