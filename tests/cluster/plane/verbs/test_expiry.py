"""Lists and watches that go back further than the history: refused as kube-apiserver does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import msgspec
import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.access.interface import AllowAll
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.store.history import Retention
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.plane.verbs.list import LIFETIME
from kvestigate.http.message import Response
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.static_tokens import StaticTokens
from tests.virtual_clock import VirtualClock

NOW = 1_800_000_000.0
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def forgetful() -> AsyncIterator[Api]:
    """A plane that remembers its last two changes or so."""
    async with Store(MemoryBackend(), retention=Retention(changes=2)) as store:
        tokens = StaticTokens({digest(TOKEN): ADMIN})
        yield Api(ApiServer(store, tokens, AllowAll(), random=Random(1)))


async def make(api: Api, *names: str) -> None:
    for name in names:
        assert (await api.post(MAPS, {"metadata": {"name": name}})).status == 201


async def test_a_stale_continue_token_comes_with_one_that_still_works(forgetful: Api) -> None:
    await make(forgetful, "a", "b", "c")
    page = await forgetful.get(f"{MAPS}?limit=1")
    await make(forgetful, "d", "e", "f", "g")

    stale = await forgetful.get(f"{MAPS}?limit=1&continue={page.body['metadata']['continue']}")
    assert (stale.status, stale.body["reason"]) == (410, "Expired")

    rest = await forgetful.get(f"{MAPS}?continue={stale.body['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest.body["items"]] == list("bcdefg")


async def test_the_new_token_continues_in_pages_of_one_moment(forgetful: Api) -> None:
    await make(forgetful, "a", "b", "c")
    page = await forgetful.get(f"{MAPS}?limit=1")
    await make(forgetful, "d", "e", "f", "g")
    stale = await forgetful.get(f"{MAPS}?continue={page.body['metadata']['continue']}")

    names, versions, token = [], set(), stale.body["metadata"]["continue"]
    while token:
        page = await forgetful.get(f"{MAPS}?limit=2&continue={token}")
        names += [item["metadata"]["name"] for item in page.body["items"]]
        versions.add(page.body["metadata"]["resourceVersion"])
        token = page.body["metadata"].get("continue")
    assert names == list("bcdefg")
    assert len(versions) == 1


async def test_a_stale_token_is_told_in_yaml_too(forgetful: Api) -> None:
    await make(forgetful, "a", "b", "c")
    page = await forgetful.get(f"{MAPS}?limit=1")
    await make(forgetful, "d", "e", "f", "g")
    token = page.body["metadata"]["continue"]
    stale = await forgetful.get(f"{MAPS}?continue={token}", accept="application/yaml")
    assert (stale.status, stale.headers.get("content-type")) == (410, "application/yaml")
    assert "continue: " in stale.body


async def test_a_token_grows_old_though_the_history_is_kept() -> None:
    clock = VirtualClock(NOW)
    async with Store(MemoryBackend()) as store:
        tokens = StaticTokens({digest(TOKEN): ADMIN})
        api = Api(ApiServer(store, tokens, AllowAll(), clock=clock, random=Random(1)))
        await make(api, "a", "b", "c")
        token = (await api.get(f"{MAPS}?limit=1")).body["metadata"]["continue"]
        await make(api, "d")

        clock.advance(LIFETIME)
        kept = await api.get(f"{MAPS}?continue={token}")
        assert [item["metadata"]["name"] for item in kept.body["items"]] == ["b", "c"]
        clock.advance(1)
        stale = await api.get(f"{MAPS}?continue={token}")
        assert stale.status == 410
        rest = await api.get(f"{MAPS}?continue={stale.body['metadata']['continue']}")
        assert [item["metadata"]["name"] for item in rest.body["items"]] == ["b", "c", "d"]
        assert (await api.delete(f"{MAPS}?continue={token}")).status == 410


async def test_a_list_of_a_forgotten_version_is_gone(forgetful: Api) -> None:
    await make(forgetful, "a")
    version = (await forgetful.get(MAPS)).body["metadata"]["resourceVersion"]
    await make(forgetful, "b", "c", "d", "e")

    exact = f"{MAPS}?resourceVersion={version}&resourceVersionMatch=Exact"
    gone = await forgetful.get(exact)
    assert (gone.status, gone.body["reason"]) == (410, "Expired")


async def test_a_watch_from_a_forgotten_version_begins_with_an_error(forgetful: Api) -> None:
    await make(forgetful, "a")
    version = (await forgetful.get(MAPS)).body["metadata"]["resourceVersion"]
    await make(forgetful, "b", "c", "d", "e")

    watch = forgetful.request("GET", f"{MAPS}?watch=1&resourceVersion={version}")
    response = await forgetful.server.handle(watch)
    assert isinstance(response, Response)
    assert isinstance(response.body, AsyncIterator)
    assert response.status == 200
    (event,) = [msgspec.json.decode(frame) async for frame in response.body]
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
