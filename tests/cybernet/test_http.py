"""The HTTP front: who gets in, what is answered, and what is recorded."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.access import Access, AccessOptions, resolve
from kvestigate.cybernet.bodies import Room
from kvestigate.cybernet.gateway import Caller
from kvestigate.cybernet.http import MOST_BYTES, STRANGERS_BYTES, listening
from kvestigate.cybernet.serving import gateway
from kvestigate.cybernet.spec import HttpListen
from kvestigate.errors import UsageError
from kvestigate.node_access.model import NodeAccess
from tests.cybernet.conftest import TOKENS, Document, Front, changed, fronted, load, recorded


async def test_an_operation_is_carried_out_and_recorded(front: Front, document: Document) -> None:
    answer = await front.call("report.run", {"name": "nodes"})
    assert answer.status_code == 200
    assert answer.json()["report"]["nodes"] == []
    [record] = recorded(document)
    assert record["identity"] == "ada"
    assert record["tags"] == ["gpu"]
    assert record["operation"] == "report.run"
    assert record["parameters"] == {"name": "nodes"}
    assert (record["decision"], record["outcome"], record["reason"]) == ("allow", "ok", "")
    assert record["remote"].startswith("127.0.0.1:")
    assert record["duration_ms"] > 0


@pytest.mark.parametrize(
    ("operation", "parameters", "token", "status", "code", "reason"),
    [
        ("report.run", {"name": "nodes"}, "", 401, "unauthenticated", "auth.tokens"),
        ("report.run", {"name": "nodes"}, "wrong", 401, "unauthenticated", "auth.tokens"),
        ("node.drain", {}, TOKENS["ada"], 403, "not_allowed", "operations.allow"),
        ("namespaces", {}, TOKENS["ada"], 403, "not_allowed", "operations.allow"),
        ("no.such", {}, TOKENS["bob"], 403, "not_allowed", "operations.allow"),
        ("report.run%2f..", {}, TOKENS["bob"], 403, "not_allowed", "operations.allow"),
        ("report.run", {}, TOKENS["ada"], 422, "constraint_violated", "constraint_violated"),
        ("report.run", {"nmae": "nodes"}, TOKENS["ada"], 422, "constraint_violated", "nmae"),
        ("report.run", {"name": 5}, TOKENS["ada"], 422, "constraint_violated", "name"),
        ("report.run", {"name": "nodse"}, TOKENS["ada"], 422, "constraint_violated", "parameters"),
        ("report.run", {"name": "nodes", "apply": True}, TOKENS["ada"], 422, None, "apply"),
        ("pods", {"namespace": "../../nodes"}, TOKENS["ada"], 422, None, "namespace"),
        ("pods", {"namespace": "a/b"}, TOKENS["ada"], 422, None, "namespace"),
        ("report.run", {"name": "pods", "namespace": "A?x"}, TOKENS["ada"], 422, None, "namespace"),
    ],
)
async def test_what_is_refused_says_by_which_rule(
    front: Front,
    document: Document,
    operation: str,
    parameters: Any,
    token: str,
    status: int,
    code: str | None,
    reason: str,
) -> None:
    answer = await front.call(operation, parameters, token)
    error = answer.json()["error"]
    assert answer.status_code == status
    assert set(error) == {"code", "message", "reason"}
    assert error["code"] == (code or "constraint_violated")
    assert error["reason"] == reason
    [record] = recorded(document)
    assert record["decision"] == "deny"
    assert record["outcome"] == "denied"
    assert record["identity"] == {TOKENS["ada"]: "ada", TOKENS["bob"]: "bob"}.get(token, "")
    assert "token-of" not in json.dumps(record)


async def test_a_mistyped_parameter_is_answered_with_the_one_that_was_meant(front: Front) -> None:
    answer = await front.call("report.run", {"nmae": "nodes"})
    assert "did you mean name?" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/healthz", 404),
        ("POST", "/api/v1/operation/report.run", 404),
        ("GET", "/api/v1/op/report.run", 405),
        ("DELETE", "/info", 405),
        ("POST", "/info", 405),
    ],
)
@pytest.mark.parametrize("identity", ["ada", ""])
async def test_other_routes_are_refused_in_the_same_envelope_and_recorded(
    front: Front, document: Document, identity: str, method: str, path: str, status: int
) -> None:
    headers = {"authorization": f"Bearer {TOKENS[identity]}"} if identity else {}
    answer = await front.http.request(method, path, headers=headers)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"code", "message", "reason"}
    assert ("allow" in answer.headers) == (status == 405)
    [record] = recorded(document)
    assert (record["identity"], record["decision"], record["outcome"]) == (
        identity,
        "deny",
        "denied",
    )
    assert record["reason"].startswith("route: ")


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"\xff", b"[" * 100_000])
async def test_a_body_that_is_no_object_is_refused(front: Front, body: bytes) -> None:
    headers = {"authorization": f"Bearer {TOKENS['ada']}"}
    answer = await front.http.post("/api/v1/op/report.run", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "malformed"


async def sent(port: int, text: str) -> tuple[int, Any]:
    """The status and the body of the answer to what is no whole request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize("identity", ["ada", ""])
@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        (f"content-length: {MOST_BYTES + 1}", 413, "too_large"),
        ("content-length: -1", 400, "malformed"),
        ("content-length: 2x", 400, "malformed"),
        ("content-length: 2\r\ncontent-length: 3", 400, "malformed"),
        ("content-length: 2\r\ntransfer-encoding: chunked", 400, "malformed"),
        ("transfer-encoding: chunked\r\n\r\nzz\r\n", 400, "malformed"),
        ("transfer-encoding: gzip, chunked", 501, "malformed"),
        ("content-length: 2\r\nexpect: much", 417, "malformed"),
        ("host: y", 400, "malformed"),
        ("x: " + "y" * 70_000, 431, "malformed"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
async def test_what_never_becomes_a_request_is_refused_and_recorded(
    front: Front, document: Document, identity: str, fields: str, status: int, code: str
) -> None:
    """A body that is too large is refused before it is read."""
    token = f"authorization: Bearer {TOKENS.get(identity, 'wrong')}\r\n"
    start = "POST /api/v1/op/workspace%2Esync?x=c4n4ry HTTP/1.1\r\nhost: x\r\n"
    answered, body = await sent(front.port, f"{start}{token}{fields}\r\n\r\n")
    assert (answered, body["error"]["code"]) == (status, code)
    [record] = recorded(document)
    assert record["operation"] == "workspace.sync"
    assert (record["identity"], record["decision"], record["outcome"]) == (
        identity,
        "deny",
        "denied",
    )
    assert record["reason"].startswith("body: " if status == 413 else "request: ")


@pytest.mark.parametrize(
    ("text", "status"), [("GET /x HTTP/2.0\r\n\r\n", 505), ("\x16\x03\x01\r\n", 400)]
)
async def test_what_is_no_http_is_recorded(
    front: Front, document: Document, text: str, status: int
) -> None:
    answered, _ = await sent(front.port, text)
    assert answered == status
    [record] = recorded(document)
    assert (record["identity"], record["operation"]) == ("", "")


async def test_strangers_may_send_less(front: Front, document: Document) -> None:
    fields = f"host: x\r\ncontent-length: {STRANGERS_BYTES + 1}\r\n\r\n"
    status, body = await sent(front.port, f"POST /api/v1/op/x HTTP/1.1\r\n{fields}")
    assert (status, body["error"]["code"]) == (413, "too_large")
    assert len(recorded(document)) == 1


async def test_what_cannot_be_recorded_is_told_to_those_who_are_refused(
    access: Access, document: Document, tmp_path: Path
) -> None:
    directory = tmp_path / "logs"
    document = changed("audit.path", str(directory / "audit.jsonl"), document)
    async with fronted(document, access) as front:
        (directory / "audit.jsonl").unlink()
        directory.rmdir()
        status, body = await sent(front.port, "GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n")
        assert (status, body["error"]["reason"]) == (503, "audit")
        assert (await front.http.get("/")).status_code == 503


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Basic token-of-ada", "token-of-ada", "Bearer a b", "B" * 4000],
)
async def test_other_authorizations_are_refused(front: Front, value: str) -> None:
    headers = {"authorization": value}
    answer = await front.http.post("/api/v1/op/report.run", json={}, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_those_with_a_token_may_send_much(front: Front) -> None:
    answer = await front.call("report.run", {"name": "x" * (4 * STRANGERS_BYTES)})
    assert answer.status_code == 422


async def test_two_tokens_in_one_request_are_refused(front: Front) -> None:
    headers = [("authorization", f"Bearer {TOKENS[name]}") for name in ("ada", "bob")]
    answer = await front.http.post("/api/v1/op/report.run", json={}, headers=headers)
    assert answer.status_code == 401


async def test_anybody_may_know_what_is_offered_and_nobody_who_by(front: Front) -> None:
    answer = await front.http.get("/info")
    info = answer.json()
    assert answer.status_code == 200
    assert info["name"] == "research-agents"
    names = [it["name"] for it in info["operations"]]
    assert names == ["cyberspace.info", "report.run", "report.list", "pods"]
    assert info["operations"][1]["parameters"]["required"] == ["name"]
    assert info["constraints"]["hosts"]["allow_names"] == ["node-1", "node-2"]
    assert info["quotas"]["max_total_active_gpu"] == 32
    for secret in ("ada", "bob", "sha256", "audit", *TOKENS.values()):
        assert secret not in answer.text


async def test_what_cannot_be_recorded_is_not_carried_out(
    access: Access, document: Document, tmp_path: Path
) -> None:
    directory = tmp_path / "logs"
    directory.mkdir()
    document = changed("audit.path", str(directory / "audit.jsonl"), document)
    async with fronted(document, access) as front:
        (directory / "audit.jsonl").unlink()
        directory.rmdir()
        answer = await front.call("report.run", {"name": "nodes"})
        assert answer.status_code == 503
        assert answer.json()["error"]["reason"] == "audit"
        answer = await front.call("report.run", token="wrong")
        assert answer.status_code == 503
        directory.mkdir()
        answer = await front.call("report.run", {"name": "nodes"})
        assert answer.status_code == 200


async def test_a_request_whose_client_has_gone_is_carried_out_and_recorded(
    front: Front, document: Document
) -> None:
    work = front.gateway.call(Caller("ada", "x"), "report.run", {"name": "nodes"})
    waiting = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    await front.gateway.close()
    [record] = recorded(document)
    assert record["outcome"] == "ok"


def access_to(server: str, directory: Path) -> Access:
    config = directory / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": {"token": "t0p-s3cret"}}],
                "current-context": "c",
            }
        )
    )
    return resolve(AccessOptions(kubeconfig=str(config)), {}, None)


async def test_what_is_broken_off_when_the_gateway_stops_is_recorded(
    document: Document, tmp_path: Path
) -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        access = access_to(f"http://127.0.0.1:{port}", tmp_path)
        async with fronted(document, access) as front:
            work = front.gateway.call(Caller("ada", "x"), "report.run", {"name": "nodes"})
            waiting = asyncio.ensure_future(work)
            await asked.wait()
            await front.gateway.close(grace=0)
            await asyncio.wait({waiting})
    [record] = recorded(document)
    assert (record["outcome"], record["reason"][:7]) == ("error", "stopped")


async def test_a_cluster_that_does_not_answer_is_told(document: Document, tmp_path: Path) -> None:
    access = access_to("https://127.0.0.1:1", tmp_path)
    async with fronted(document, access) as front:
        answer = await front.call("report.run", {"name": "nodes"})
    assert answer.status_code == 503
    assert "t0p-s3cret" not in answer.text
    assert recorded(document)[0]["outcome"] == "error"


async def test_a_cyberspace_without_tokens_is_not_served(
    access: Access, document: Document
) -> None:
    document = changed("auth.tokens", [], document)
    async with gateway(load(document), access) as opened:
        with pytest.raises(UsageError, match=r"auth\.tokens is empty"):
            await listening(opened, HttpListen("127.0.0.1", 0))


async def test_hosts_are_reached_through_the_daemon_set_that_was_named(
    document: Document, access: Access
) -> None:
    loaded = load(changed("operations.allow", ["workspace.status", "workspace.create"], document))
    caller = Caller("ada", "here")
    new = {"workspace": {"name": "agent-a", "node": "node-1", "storage": {"tmpfs_size": "1Gi"}}}
    async with gateway(loaded, access, NodeAccess("ops", "doors")) as opened:
        for name, parameters in (("workspace.status", {}), ("workspace.create", new)):
            outcome = await opened.call(caller, name, parameters)
            assert outcome.refusal is not None
            assert "DaemonSet 'doors' does not exist in namespace 'ops'" in outcome.refusal.message


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"archive": "%s"}', 422),
        (b'{"workspace": {"archive": "%s"}}', 422),
        (b'[{"archive": "%s"}]', 400),
        (b'"archive": "%s"', 400),
        (b'{"a": %s, "archive": "%%s"}' % (b"[" * 600 + b"]" * 600), 400),
    ],
    ids=["parameter", "inside of one", "no object", "no JSON", "deep"],
)
async def test_files_leave_their_room_wherever_they_are(
    front: Front, document: Document, body: bytes, status: int
) -> None:
    """And the request is recorded."""
    front.gateway.room = Room(1000)
    headers = {"authorization": f"Bearer {TOKENS['ada']}"}
    sent = body % base64.b64encode(bytes(900))
    for count in (1, 2):
        answer = await front.http.post("/api/v1/op/pods", content=sent, headers=headers)
        assert answer.status_code == status
        assert len(recorded(document)) == count


@pytest.mark.parametrize(("depth", "status"), [(60, 422), (300, 400), (600, 400)])
async def test_what_is_nested_deep_is_refused_and_recorded(
    front: Front, document: Document, depth: int, status: int
) -> None:
    nested: Any = "x"
    for _ in range(depth):
        nested = [nested]
    answer = await front.call("pods", {"namespace": nested})
    assert answer.status_code == status
    [record] = recorded(document)
    assert record["decision"] == "deny"


async def test_files_that_never_come_whole_leave_their_room(front: Front) -> None:
    front.gateway.room = Room(1000)
    reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
    head = "POST /api/v1/op/x HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n"
    fields = f"Authorization: Bearer {TOKENS['ada']}\r\nExpect: 100-continue\r\n\r\n"
    writer.write((head + fields).encode())
    assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
    writer.write(b'{"archive": "' + base64.b64encode(bytes(900)))
    for length in (80_000, 400, 400):  # as it comes, and at once
        refused = await front.call("workspace.sync", {"archive": "A" * length})
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "unavailable"
    writer.close()
    small = {"archive": base64.b64encode(bytes(900)).decode(), "pad": "x" * 80_000}
    async with asyncio.timeout(20):
        while (answer := await front.call("workspace.sync", small)).status_code == 503:
            pass
    assert answer.status_code == 403
    assert (await front.call("workspace.sync", small)).status_code == 403
