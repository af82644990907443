from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate import errors
from kvestigate.client.api import Api
from kvestigate.client.call import Call
from kvestigate.cluster.plane.access.authz.rbac import Rbac
from kvestigate.cluster.plane.front.audit_log import AuditLog
from kvestigate.cluster.plane.front.server import ApiServer
from kvestigate.cluster.plane.model import request_info
from kvestigate.cluster.plane.model.request_info import Visit
from kvestigate.cluster.plane.model.user import AUTHENTICATED, MASTERS, User
from kvestigate.cluster.plane.store.memory import MemoryBackend
from kvestigate.cluster.plane.store.store import Store
from kvestigate.cluster.workforce.direct import DirectExchange, DirectTransport, request_info_of
from kvestigate.http.message import Request, Response, Upgrade
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from tests.static_tokens import StaticTokens

MAPS = builtins.resource("configmaps")
PODS = builtins.resource("pods")
MANAGER = User("system:kube-controller-manager", (MASTERS, AUTHENTICATED))
NOBODY = User("nobody", (AUTHENTICATED,))


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    audit = AuditLog(tmp_path / "audit.log")
    async with Store(MemoryBackend()) as store:
        yield ApiServer(store, StaticTokens({}), Rbac(), audit=audit)
    audit.close()


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": "b"}}


@pytest.mark.parametrize(
    ("call", "query"),
    [
        (Call("get", PODS, "shop", "web-0"), ()),
        (Call("create", PODS, "shop"), (("fieldManager", "a b"),)),
        (Call("create", PODS, "shop", "web-0", "binding"), ()),
        (Call("update", PODS, "shop", "web-0", query=(("dryRun", "All"),)), (("force", "true"),)),
        (Call("patch", builtins.resource("deployments"), "shop", "web", "status"), ()),
        (Call("patch", builtins.resource("namespaces"), None, "shop", "finalize"), ()),
        (Call("delete", builtins.resource("namespaces"), None, "shop"), ()),
        (Call("get", builtins.resource("clusterroles"), None, "system:node"), ()),
        (Call("patch", Resource("x.io", "v1", "widgets", "Widget"), "shop", "a%b"), ()),
    ],
)
def test_a_call_asks_for_what_its_request_would(
    call: Call, query: tuple[tuple[str, str], ...]
) -> None:
    sent = call.request(*query)
    assert request_info_of(call, query, sent.path) == request_info.parse(
        sent.method, sent.path, sent.query
    )


async def test_writes_are_made_in_the_name_of_the_user(server: ApiServer, tmp_path: Path) -> None:
    near = DirectExchange(DirectTransport(server, "a", MANAGER))
    made = json.loads(await near.ask(_create("one"), (("fieldManager", "quota"),)))
    assert made["metadata"]["managedFields"][0]["manager"] == "quota"
    other = json.loads(await near.ask(_create("two"), ()))
    assert other["metadata"]["managedFields"][0]["manager"] == "kube-controller-manager"
    line = json.loads((tmp_path / "audit.log").read_text().splitlines()[0])
    assert line["user"]["username"] == MANAGER.name
    assert line["requestURI"] == (
        "/clusters/a/control-plane/api/v1/namespaces/default/configmaps?fieldManager=quota"
    )


async def test_who_may_not_is_refused(server: ApiServer) -> None:
    near = DirectExchange(DirectTransport(server, "a", NOBODY))
    with pytest.raises(errors.Forbidden, match="nobody"):
        await near.ask(_create("one"), ())


async def test_many_objects_are_asked_for_as_everybody_does(server: ApiServer) -> None:
    transport = DirectTransport(server, "a", MANAGER)
    await DirectExchange(transport).ask(_create("one"), ())
    everything = Call("deletecollection", MAPS, "default")
    gone = json.loads(await DirectExchange(transport).ask(everything, ()))
    assert [item["metadata"]["name"] for item in gone["items"]] == ["one"]
    assert (await Api(transport).list(MAPS)).items == ()


async def test_a_closed_transport_stays_closed(server: ApiServer) -> None:
    transport = DirectTransport(server, "a", MANAGER)
    await transport.aclose()
    with pytest.raises(errors.ConnectionFailed):
        await DirectExchange(transport).ask(_create("one"), ())


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
        near = DirectExchange(
            DirectTransport(Scripted(store, StaticTokens({}), Rbac()), "a", MANAGER)
        )
        assert await near.ask(_create("one"), ()) == b"done"
        with pytest.raises(errors.NotFound, match="gone"):
            await near.ask(_create("one"), ())
    assert not answers


def _create(name: str) -> Call:
    return Call("create", MAPS, "default", body=json.dumps(config_map(name)).encode())
