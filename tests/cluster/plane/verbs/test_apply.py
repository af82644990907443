"""Managed fields and server-side apply through the API: times, races and the server's own part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from tests.cluster.plane.conftest import ADMIN, TOKEN, Answer, Api
from tests.static_tokens import StaticTokens
from tests.virtual_clock import VirtualClock

APPLY = "application/apply-patch+yaml"
HERE = "/api/v1/namespaces/default"
MAP = f"{HERE}/configmaps/a"
START = 1_800_000_000.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(START)


@pytest.fixture
async def timed(clock: VirtualClock) -> AsyncIterator[Api]:
    """A plane whose time stands still."""
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest(TOKEN): ADMIN})
        yield Api(ApiServer(store, tokens, AllowAll(), clock=clock, random=Random(1)))


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


async def apply(api: Api, manager: str, config: Any, path: str = MAP) -> Answer:
    return await api.patch(f"{path}?fieldManager={manager}", config, APPLY)


def entries(answer: Answer) -> dict[str, Any]:
    return {each["manager"]: each for each in answer.body["metadata"].get("managedFields", ())}


async def test_only_a_change_moves_the_time_and_the_version(
    timed: Api, clock: VirtualClock
) -> None:
    made = await timed.post(f"{HERE}/configmaps?fieldManager=ann", config_map(k="1"))
    clock.advance(60)
    again = await timed.put(f"{MAP}?fieldManager=ann", config_map(k="1"))
    assert again.body == made.body
    changed = await timed.put(f"{MAP}?fieldManager=ann", config_map(k="2"))
    assert entries(made)["ann"]["time"] == "2027-01-15T08:00:00Z"
    assert entries(changed)["ann"]["time"] == "2027-01-15T08:01:00Z"


def pod(name: str, labels: dict[str, str] | None = None, /, **container: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "a", "image": "b", **container}]}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


@pytest.mark.parametrize(
    ("like", "unlike"),
    [
        (pod("b", command=["x"]), pod("c")),
        (pod("b", command=["y", "z"]), pod("c", args=["x"])),
        (pod("b", command=["x"]), pod("c", command=["x"], stdin=True)),
        (pod("b", command=["x"]), pod("c", name="other", command=["x"])),
        (pod("b", command=["x"]), pod("c", {"app": "x"}, command=["x"])),
    ],
)
async def test_creators_of_pods_own_the_same_if_these_say_something_in_the_same_places(
    timed: Api, like: dict[str, Any], unlike: dict[str, Any]
) -> None:
    first, second, third = [
        entries(await timed.post(f"{HERE}/pods?fieldManager=ann", each))["ann"]["fieldsV1"]
        for each in (pod("a", command=["x"]), like, unlike)
    ]
    assert first == second
    assert first != third
    (name,) = (each["name"] for each in unlike["spec"]["containers"])
    owned = third["f:spec"]["f:containers"][f'k:{{"name":"{name}"}}']
    assert [f"f:{field}" in owned for field in ("command", "args", "stdin")] == [
        field in unlike["spec"]["containers"][0] for field in ("command", "args", "stdin")
    ]


async def test_applying_the_same_again_is_no_write(timed: Api, clock: VirtualClock) -> None:
    made = await apply(timed, "ann", config_map(k="1"))
    assert made.status == 201
    clock.advance(60)
    again = await apply(timed, "ann", config_map(k="1"))
    assert (again.status, again.body) == (200, made.body)


async def test_a_time_that_a_client_sends_does_not_make_a_write(timed: Api) -> None:
    made = await timed.post(f"{HERE}/configmaps?fieldManager=ann", config_map(k="1"))
    sent = {**made.body, "metadata": {**made.body["metadata"]}}
    sent["metadata"]["managedFields"] = [
        {**each, "time": "2000-01-01T00:00:00Z"} for each in sent["metadata"]["managedFields"]
    ]
    assert (await timed.put(f"{MAP}?fieldManager=ann", sent)).body == made.body


async def test_of_two_first_applies_one_creates(api: Api) -> None:
    answers = await asyncio.gather(
        apply(api, "ann", config_map(k="1")), apply(api, "bob", config_map(k="1", more="2"))
    )
    assert sorted(answer.status for answer in answers) == [200, 201]
    assert set(entries(await api.get(MAP))) == {"ann", "bob"}


async def test_what_the_server_adds_belongs_to_nobody(api: Api) -> None:
    await api.post(f"{HERE}/serviceaccounts", {"metadata": {"name": "default"}})
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    made = await api.post(f"{HERE}/pods?fieldManager=ann", pod)
    assert made.status == 201, made.body
    assert made.body["spec"]["volumes"]
    fields = entries(made)["ann"]["fieldsV1"]
    assert set(fields) == {"f:spec"}
    assert not {"f:volumes", "f:serviceAccountName", "f:nodeName"} & set(fields["f:spec"])
    assert "f:restartPolicy" in fields["f:spec"], "defaults belong to who left them out"


async def test_a_refused_apply_leaves_everything_as_it_was(api: Api) -> None:
    made = await apply(api, "ann", config_map(k="1"))
    assert (await apply(api, "bob", config_map(k="2", more="3"))).status == 409
    assert (await api.get(MAP)).body == made.body


async def test_a_dry_run_shows_the_managers_it_would_leave(api: Api) -> None:
    made = await apply(api, "ann", config_map(k="1"))
    shown = await api.patch(f"{MAP}?fieldManager=bob&dryRun=All", config_map(more="2"), APPLY)
    assert set(entries(shown)) == {"ann", "bob"}
    assert (await api.get(MAP)).body == made.body


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"3", b"a: [", b"\xff\xfe", b'{"metadata": 3}', b"{}"]
)
async def test_what_is_no_configuration_is_a_bad_request(api: Api, body: bytes) -> None:
    answer = await apply(api, "ann", body)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
