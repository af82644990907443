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
from kvestigate.http.message import Response
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.static_tokens import StaticTokens

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
