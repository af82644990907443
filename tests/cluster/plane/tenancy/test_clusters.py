"""/clusters: the planes of a server."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.plane.access.authn.token_file import digest
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.request_info import RequestInfo
from kvestigate.cluster.plane.model.user import User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.state import PlaneState
from kvestigate.cluster.plane.store.store import Store
from kvestigate.errors import Forbidden
from tests.cluster.plane.conftest import ADMIN, TOKEN, Api
from tests.static_tokens import StaticTokens


async def ids(api: Api) -> list[str]:
    listed = await api.get("/clusters")
    assert listed.status == 200
    return [item["id"] for item in listed.body["items"]]


async def test_a_plane_is_made_listed_and_deleted(api: Api) -> None:
    made = await api.post("/clusters", {"id": "alpha"})

    assert (made.status, made.body["id"]) == (201, "alpha")
    assert made.body["path"] == "/clusters/alpha/control-plane"
    assert await ids(api) == ["alpha", "root"]
    assert (await api.get("/clusters/alpha")).body == made.body

    deleted = await api.delete("/clusters/alpha")

    assert (deleted.status, deleted.body["status"]) == (200, "Success")
    assert await ids(api) == ["root"]


async def test_a_made_plane_is_bootstrapped(api: Api) -> None:
    made = (await api.post("/clusters", {"id": "alpha"})).body

    namespaces = (await api.get(f"{made['path']}/api/v1/namespaces")).body["items"]

    assert "kube-system" in [each["metadata"]["name"] for each in namespaces]


async def test_what_was_in_a_deleted_plane_is_gone(api: Api) -> None:
    inside = Api(api.server, "/clusters/alpha/control-plane")
    await inside.post("/api/v1/namespaces", {"metadata": {"name": "mine"}})
    await api.delete("/clusters/alpha")

    assert (await inside.get("/api/v1/namespaces/mine")).status == 404


async def test_the_first_touch_of_a_plane_lists_it(api: Api) -> None:
    await api.get("/clusters/beta/control-plane/version")

    assert await ids(api) == ["beta", "root"]


async def test_who_wants_a_plane_that_is_there_makes_none(api: Api) -> None:
    """So one that was deleted does not come back by a request that is late."""
    late = {"x-plane-must-exist": "true"}
    inside = Api(api.server, "/clusters/alpha/control-plane")

    answer = await inside.post("/api/v1/namespaces", {"metadata": {"name": "mine"}}, **late)
    root = await api.get("/version", **late)

    assert (answer.status, answer.body["message"]) == (404, 'clusters "alpha" not found')
    assert root.status == 200
    assert await ids(api) == ["root"]


async def test_looking_for_a_plane_does_not_make_it(api: Api) -> None:
    assert (await api.get("/clusters/gamma")).status == 404
    assert await ids(api) == ["root"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        ("POST", "/clusters", {"id": "root"}, 409, 'clusters "root" already exists'),
        ("POST", "/clusters", {"id": "Not_OK"}, 400, 'id: "Not_OK" cannot be the id of a plane'),
        ("POST", "/clusters", {"name": "x"}, 400, 'the body is not like {"id": "alpha"}'),
        ("POST", "/clusters", b"{", 400, 'the body is not like {"id": "alpha"}'),
        ("DELETE", "/clusters/missing", None, 404, 'clusters "missing" not found'),
        ("DELETE", "/clusters/root", None, 403, "the root plane cannot be deleted"),
        ("PUT", "/clusters", {}, 405, "does not allow this method"),
        ("GET", "/clusters/a/b", None, 404, "planes are served at /clusters/ID/control-plane"),
    ],
)
async def test_what_is_refused(
    api: Api, method: str, path: str, body: Any, status: int, message: str
) -> None:
    refused = await api.call(method, path, body)

    assert refused.status == status
    assert message in refused.body["message"]


async def test_a_plane_knows_nothing_of_its_siblings(api: Api) -> None:
    inside = Api(api.server, "/clusters/alpha/control-plane")

    assert (await inside.get("/clusters")).status == 404


class Nothing:
    """Allows nobody anything."""

    def authorize(self, state: PlaneState, user: User, info: RequestInfo) -> None:
        raise Forbidden("no")


async def test_who_may_do_nothing_in_a_plane_does_not_make_it() -> None:
    async with Store(MemoryBackend()) as store:
        server = ApiServer(store, StaticTokens({digest(TOKEN): ADMIN}), Nothing())

        refused = await Api(server).get("/clusters/mine/control-plane/api/v1/pods")

        assert refused.status == 403
        assert store.planes() == []
