"""GET /events: every change with its actor."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from kvestigate.http.message import Response
from tests.cluster.plane.conftest import JANE, Api
from tests.cluster.plane.tenancy.environment.conftest import INSIDE, MAPS, config_map
from tests.cluster.plane.tenancy.environment.test_snapshots import LIST_MAPS, grant


async def test_changes_come_in_order_with_actor_and_object(alpha: Api) -> None:
    start = (await alpha.get("/snapshot")).body["resourceVersion"]
    await alpha.post(MAPS, config_map("a", k="1"))
    await alpha.patch(f"{MAPS}/a", {"data": {"k": "2"}})
    await alpha.delete(f"{MAPS}/a")

    body = (await alpha.get(f"/events?fromRevision={start}")).body

    assert [(e["type"], e["name"], e["actor"]) for e in body["events"]] == [
        ("ADDED", "a", "admin"),
        ("MODIFIED", "a", "admin"),
        ("DELETED", "a", "admin"),
    ]
    first, second, _ = body["events"]
    assert second["revision"] == first["revision"] + 1 == int(start) + 2
    assert second["object"]["data"] == {"k": "2"}
    assert "managedFields" not in second["object"]["metadata"]
    assert body["toRevision"] == int(start) + 3


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["a", "n", "default", "b"]),
        ("&resource=configmaps", ["a", "b"]),
        ("&resource=namespaces", ["n"]),
    ],
)
async def test_resources_are_chosen(alpha: Api, query: str, expected: list[str]) -> None:
    start = (await alpha.get("/snapshot")).body["resourceVersion"]
    await alpha.post(MAPS, config_map("a"))
    await alpha.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    await alpha.post("/api/v1/namespaces/n/serviceaccounts", {"metadata": {"name": "default"}})
    await alpha.post(MAPS, config_map("b"))

    events = (await alpha.get(f"/events?fromRevision={start}{query}")).body["events"]

    assert [event["name"] for event in events] == expected


async def test_it_ends_where_told_and_leaves_objects_out(alpha: Api) -> None:
    made = (await alpha.post(MAPS, config_map("a"))).body["metadata"]["resourceVersion"]
    await alpha.post(MAPS, config_map("b"))

    body = (await alpha.get(f"/events?toRevision={made}&objects=false")).body

    assert ([e["name"] for e in body["events"]], body["toRevision"]) == (["a"], int(made))
    assert "object" not in body["events"][0]


async def test_as_lines_for_those_who_want_lines(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("a"))

    answer = await alpha.get("/events", accept="application/x-ndjson")

    (line,) = answer.body.splitlines()
    assert msgspec.json.decode(line)["name"] == "a"


async def test_who_follows_gets_what_was_and_what_comes(alpha: Api) -> None:
    await alpha.post(MAPS, config_map("a"))
    response = await alpha.server.handle(alpha.request("GET", "/events?follow=true"))
    assert isinstance(response, Response)
    stream = response.body
    assert isinstance(stream, AsyncIterator)

    first = msgspec.json.decode(await anext(stream))
    await alpha.post(MAPS, config_map("b"))
    second = msgspec.json.decode(await anext(stream))
    await alpha.server.planes.store.delete("alpha")
    last = msgspec.json.decode(await anext(stream))

    assert (first["name"], second["name"], last["type"]) == ("a", "b", "ERROR")


async def test_a_revision_that_is_forgotten_has_expired(alpha: Api) -> None:
    answer = await alpha.get("/events?fromRevision=1")

    assert (answer.status, answer.body["reason"]) == (410, "Expired")


async def test_nobody_follows_what_they_may_not_list(guarded: Api) -> None:
    await guarded.post("/clusters", {"id": "alpha"})
    alpha = Api(guarded.server, INSIDE)
    await grant(alpha, "reader", [{"nonResourceURLs": ["/events"], "verbs": ["get"]}, LIST_MAPS])
    await alpha.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
    await alpha.post(MAPS, config_map("a"))

    events = (await alpha.get("/events", **JANE)).body["events"]

    assert [event["name"] for event in events] == ["a"]
