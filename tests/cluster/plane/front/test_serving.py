"""A whole server, from its options to its answers over TLS."""

from __future__ import annotations

import base64
import datetime
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvestigate.cluster.plane.front.data_directory import DataDirectory
from kvestigate.cluster.plane.front.serving import (
    Auth,
    Listen,
    ServeOptions,
    Serving,
    check,
    serving,
)
from kvestigate.errors import UsageError
from kvestigate.http.message import Headers, Request
from kvestigate.http.pool import HttpClient
from kvestigate.http.tls import client_context

ANY_PORT = Listen("127.0.0.1", 0)


def trusting(data: Path) -> ssl.SSLContext:
    """What a client needs to know of the server and nothing of its keys."""
    now = datetime.datetime.now(datetime.UTC)
    return client_context(ca=DataDirectory(data).authority(now).pair.certificate)


async def ask(
    started: Serving, data: Path, token: str = "", method: str = "GET", padding: int = 0
) -> Any:
    port = int(started.url.rpartition(":")[2])
    fields = [("authorization", f"Bearer {token}")] if token else []
    body = b'{"metadata": {"name": "kept"}}' + b" " * padding if method == "POST" else b""
    async with HttpClient(host="127.0.0.1", port=port, tls=trusting(data)) as client:
        request = Request(method, "/api/v1/namespaces", headers=Headers(fields), body=body)
        incoming = await client.send(request, timeout=10)
        return incoming.status, msgspec.json.decode(await incoming.read())


async def test_the_owner_gets_in_and_nobody_else(tmp_path: Path) -> None:
    async with serving(ServeOptions(tmp_path, ANY_PORT, memory=True)) as started:
        written = msgspec.json.decode(started.kubeconfig.read_bytes())
        token = written["users"][0]["user"]["token"]

        assert written["clusters"][0]["cluster"]["server"] == started.url
        assert (await ask(started, tmp_path, token))[0] == 200
        assert (await ask(started, tmp_path, "guessed"))[0] == 401
        assert (await ask(started, tmp_path))[0] == 401


async def test_the_owners_certificate_alone_is_enough(tmp_path: Path) -> None:
    async with serving(ServeOptions(tmp_path, ANY_PORT, memory=True)) as started:
        [entry] = msgspec.json.decode(started.kubeconfig.read_bytes())["users"]
        shown = client_context(
            ca=started.authority.pair.certificate,
            certificate=base64.b64decode(entry["user"]["client-certificate-data"]),
            key=base64.b64decode(entry["user"]["client-key-data"]),
        )
        port = int(started.url.rpartition(":")[2])
        async with HttpClient(host="127.0.0.1", port=port, tls=shown) as client:
            incoming = await client.send(Request("GET", "/api/v1/nodes"), timeout=10)
            await incoming.read()

    assert incoming.status == 200


async def test_handed_out_tokens_are_for_users_whom_rbac_judges(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('boss,jane,,system:masters\nclerk,bob,,"dev"\n')
    options = ServeOptions(tmp_path, ANY_PORT, memory=True, token_file=tokens)
    async with serving(options) as started:
        assert (await ask(started, tmp_path, "boss"))[0] == 200
        status, refused = await ask(started, tmp_path, "clerk")

    assert status == 403
    assert refused["message"] == (
        'namespaces is forbidden: User "bob" cannot list resource "namespaces" in API group "" at '
        "the cluster scope"
    )


async def test_requests_are_noted_where_told(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with serving(ServeOptions(tmp_path, ANY_PORT, memory=True, audit_log=log)) as started:
        await ask(started, tmp_path, "guessed")

    *own, event = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    assert {each["user"]["username"] for each in own} == {"system:kplane:fleets"}
    assert (event["requestURI"], event["responseStatus"]["code"]) == ("/api/v1/namespaces", 401)
    assert event["sourceIPs"] == ["127.0.0.1"]


async def test_a_request_that_is_too_large_is_told_the_limit(tmp_path: Path) -> None:
    options = ServeOptions(tmp_path, ANY_PORT, memory=True, auth=Auth.NONE)
    async with serving(options) as started:
        status, body = await ask(started, tmp_path, method="POST", padding=3 * 1024 * 1024)

    assert status == 413
    assert (body["kind"], body["reason"]) == ("Status", "RequestEntityTooLarge")
    assert body["message"] == "Request entity too large: limit is 3145728"


async def test_without_authentication_everyone_does(tmp_path: Path) -> None:
    options = ServeOptions(tmp_path, ANY_PORT, memory=True, auth=Auth.NONE)
    async with serving(options) as started:
        assert (await ask(started, tmp_path))[0] == 200


@pytest.mark.parametrize(("memory", "kept"), [(False, True), (True, False)])
async def test_planes_outlive_their_server_unless_told_otherwise(
    tmp_path: Path, memory: bool, kept: bool
) -> None:
    options = ServeOptions(tmp_path, ANY_PORT, memory=memory)
    token = ""
    async with serving(options) as started:
        token = DataDirectory(tmp_path).admin_token()
        assert (await ask(started, tmp_path, token, "POST"))[0] == 201
    async with serving(options) as started:
        _, listed = await ask(started, tmp_path, token)
        names = [item["metadata"]["name"] for item in listed["items"]]

    assert ("kept" in names) is kept


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("192.0.2.1", False),
        ("example.com", False),
    ],
)
def test_only_this_machine_may_do_without_authentication(host: str, allowed: bool) -> None:
    options = ServeOptions(Path("unused"), Listen(host, 6443), auth=Auth.NONE)

    if allowed:
        check(options)
    else:
        with pytest.raises(UsageError, match="--auth none"):
            check(options)


@pytest.mark.parametrize(
    ("host", "reachable"), [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("192.0.2.1", "192.0.2.1")]
)
def test_the_kubeconfig_names_an_address_that_can_be_dialled(host: str, reachable: str) -> None:
    assert Listen(host, 1).reachable == reachable
    assert Listen(host, 1).url_host == (f"[{reachable}]" if ":" in reachable else reachable)


async def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    async with serving(ServeOptions(tmp_path / "one", ANY_PORT, memory=True)) as started:
        port = int(started.url.rpartition(":")[2])
        taken = ServeOptions(tmp_path / "two", Listen("127.0.0.1", port), memory=True)

        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: Address already"):
            async with serving(taken):
                raise AssertionError("two servers on one port")
