from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model.request_info import Visit
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.workforce.direct import DirectTransport
from kvestigate.cluster.workforce.identities import Identity
from kvestigate.http.message import Request, Response, Upgrade
from kvestigate.kube import builtins
from tests.static_tokens import StaticTokens

MAPS = builtins.resource("configmaps")
PART = Identity("kube-apiserver", User("system:apiserver", (MASTERS, AUTHENTICATED)))
NOBODY = Identity("nobody", User("nobody", (AUTHENTICATED,)))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    audit = AuditLog(tmp_path / "audit.log")
    async with Store(MemoryBackend()) as store:
        yield ApiServer(store, StaticTokens({}), Rbac(), audit=audit)
    audit.close()


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": "b"}}


async def test_writes_are_made_in_the_name_of_the_user(server: ApiServer, tmp_path: Path) -> None:
    near = Api(DirectTransport(server, "a", PART))
    made = await near.create(MAPS, config_map("one"), field_manager="quota")
    assert made["metadata"]["managedFields"][0]["manager"] == "quota"
    other = await near.create(MAPS, config_map("two"))
    assert other["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    line = json.loads((tmp_path / "audit.log").read_text().splitlines()[0])
    assert line["user"]["username"] == PART.user.name
    assert line["requestURI"] == (
        "/clusters/a/control-plane/api/v1/namespaces/default/configmaps?fieldManager=quota"
    )


async def test_who_may_not_is_refused(server: ApiServer) -> None:
    near = Api(DirectTransport(server, "a", NOBODY))
    with pytest.raises(errors.Forbidden, match="nobody"):
        await near.create(MAPS, config_map("one"))


async def test_many_objects_are_asked_for_as_everybody_does(server: ApiServer) -> None:
    near = Api(DirectTransport(server, "a", PART))
    await near.create(MAPS, config_map("one"))
    gone = await near.delete_collection(MAPS, Selection("default"))
    assert [item["metadata"]["name"] for item in gone.items] == ["one"]
    assert (await near.list(MAPS)).items == ()


async def test_a_closed_transport_stays_closed(server: ApiServer) -> None:
    transport = DirectTransport(server, "a", PART)
    await transport.aclose()
    with pytest.raises(errors.ConnectionFailed):
        await Api(transport).create(MAPS, config_map("one"))


async def test_a_refusal_is_an_error_and_one_for_now_is_asked_again() -> None:
    answers = [
        Response(429, [("retry-after", "0")], b"{}"),
        Response(429, [("retry-after", "0")], b"{}"),
        Response(200, [], b"done"),
        Response(
            404,
            [],
            b'{"kind":"Status","reason":"NotFound","message":"gone","details":{"name":"one"}}',
        ),
    ]

    class Scripted(ApiServer):
        async def handle(self, _: Request, visit: Visit | None = None) -> Response | Upgrade:
            return answers.pop(0)

    async with Store(MemoryBackend()) as store:
        near = Api(DirectTransport(Scripted(store, StaticTokens({}), Rbac()), "a", PART))
        assert await near.create(MAPS, config_map("one"), type=bytes) == b"done"
        with pytest.raises(errors.NotFound, match="gone"):
            await near.create(MAPS, config_map("one"))
    assert not answers
