"""The MCP front: with the official client of both eras over HTTP and stdio, and message by message
where that client is too polite."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import yaml

from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.cybernet.gateway import Caller
from kvestigate.cybernet.serving import gateway, identity_for_mcp
from kvestigate.errors import UsageError
from kvestigate.kube.builtins import resource
from tests.cybernet.conftest import TOKENS, Document, Front, audited, changed, load, recorded

# Importing the official SDK takes most of a second: that is for the worker that needs it.
if TYPE_CHECKING:
    from mcp import Client

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
ERAS = ("legacy", "auto", MODERN)


@asynccontextmanager
async def over_http(front: Front, era: str, token: str = TOKENS["ada"]) -> AsyncIterator[Client]:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{front.port}/mcp"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        yield client


@asynccontextmanager
async def over_stdio(
    access: Access, document: Document, home: Path, era: str
) -> AsyncIterator[Client]:
    from mcp import Client, StdioServerParameters

    config = home / "space.yaml"
    config.write_text(yaml.safe_dump(document))
    words = ["-m", "kvestigate", "cybernet", "mcp-server", "--config", str(config)]
    rest = ["--identity", "ada", "--kubeconfig", str(access.files[0])]
    async with Client(
        StdioServerParameters(command=sys.executable, args=[*words, *rest]), mode=era
    ) as client:
        yield client


async def use(client: Client) -> None:
    """Everything that the reading tools of the cyberspace can be asked for."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"cyberspace_info", "report_run", "report_list", "pods"}
    assert tools["report_run"].input_schema["required"] == ["name"]
    assert all((tool.output_schema or {})["type"] == "object" for tool in tools.values())
    annotations = tools["report_run"].annotations
    assert annotations is not None
    assert annotations.read_only_hint
    nodes = await client.call_tool("report_run", {"name": "nodes"})
    assert not nodes.is_error
    assert nodes.structured_content["report"]["nodes"] == []
    standing = await client.call_tool("cyberspace_info", {})
    assert standing.structured_content["identity"] == "ada"
    listed = await client.call_tool("report_list", {})
    assert not listed.is_error
    pods = await client.call_tool("pods", {})
    assert not pods.is_error
    refused = await client.call_tool("report_run", {"name": "nodse"})
    assert refused.is_error


OUTCOMES = ["ok"] * 4 + ["denied"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_official_client_lists_and_calls_every_tool_over_http(
    front: Front, document: Document, era: str
) -> None:
    async with over_http(front, era) as client:
        assert (client.protocol_version == MODERN) is (era != "legacy")
        await use(client)
    records = recorded(document)
    assert [record["outcome"] for record in records] == OUTCOMES
    assert {record["identity"] for record in records} == {"ada"}
    assert all(record["remote"].startswith("127.0.0.1:") for record in records)


@pytest.mark.parametrize("era", ["legacy", MODERN])
async def test_the_official_client_lists_and_calls_every_tool_over_stdio(
    access: Access, document: Document, tmp_path: Path, era: str
) -> None:
    async with over_stdio(access, document, tmp_path, era) as client:
        await use(client)
    records = recorded(document)
    assert [record["outcome"] for record in records] == OUTCOMES
    assert {(record["identity"], record["remote"]) for record in records} == {("ada", "stdio")}


async def test_the_token_of_a_message_says_who_asks(front: Front, document: Document) -> None:
    async with over_http(front, MODERN, TOKENS["bob"]) as client:
        await client.call_tool("report_list", {})
    assert [record["identity"] for record in recorded(document)] == ["bob"]


def ask(method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def post(front: Front, message: Any, **headers: str) -> httpx2.Response:
    fields = {
        "authorization": f"Bearer {TOKENS['ada']}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    content = message if isinstance(message, bytes) else json.dumps(message).encode()
    return await front.http.post("/mcp", content=content, headers=fields)


async def test_nobody_without_a_token_reaches_the_protocol(
    front: Front, document: Document
) -> None:
    for wrong in ("Bearer nobody", "Basic x", ""):
        answer = await post(front, ask("tools/list"), authorization=wrong)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["error"]["code"] == "unauthenticated"
    assert {record["outcome"] for record in audited(document)} == {"denied"}


async def test_pages_of_other_sites_are_not_answered(front: Front) -> None:
    own = f"http://127.0.0.1:{front.port}"
    assert (await post(front, ask("tools/list"), origin=own)).status_code == 200
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1"):
        answer = await post(front, ask("tools/list"), origin=origin)
        assert answer.status_code == 403


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_messages_are_posted_and_nothing_else(front: Front, method: str) -> None:
    """There is no session, so there is none to listen to and none to end."""
    headers = {"authorization": f"Bearer {TOKENS['ada']}", "accept": "text/event-stream"}
    answer = await front.http.request(method, "/mcp", headers=headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("message", [b"{", b"\xff\xfe", b"[" * 100_000])
async def test_a_message_that_is_no_json_is_answered_in_the_protocol_and_recorded(
    front: Front, document: Document, message: bytes
) -> None:
    answer = await post(front, message)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)
    assert [record["outcome"] for record in recorded(document)] == ["denied"]


async def test_a_message_is_as_long_as_a_request_may_be(front: Front) -> None:
    call = ask("tools/call", name="report_run", arguments={"name": "n" * (1 << 20)})
    answer = await post(front, call)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


async def test_mcp_can_be_turned_off(document: Document, access: Access) -> None:
    from tests.cybernet.conftest import fronted

    async with fronted(changed("listen.mcp.http", False, document), access) as front:
        assert (await post(front, ask("tools/list"))).status_code == 404


@pytest.mark.parametrize("header", ["Mcp-Name", "Mcp-Method"])
async def test_headers_that_contradict_the_message_are_refused(front: Front, header: str) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = ask("tools/call", name="report_list", arguments={}, _meta=meta)
    right = {"mcp-protocol-version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "report_list"}
    assert (await post(front, call, **right)).status_code == 200
    assert (await post(front, call, **{**right, header: "pods"})).status_code == 400


class Wire:
    """One client over lines, in process."""

    def __init__(self, access: Access, document: Document) -> None:
        self._access = access
        self._loaded = load(document)

    async def say(self, *messages: Any) -> list[Any]:
        """What is answered to these lines, in the order of the answers."""
        from kvestigate.cybernet.mcp import McpFront

        answers: list[Any] = []

        async def lines() -> AsyncIterator[bytes]:
            for message in messages:
                raw = message if isinstance(message, bytes) else json.dumps(message).encode()
                yield raw + b"\n"

        async with gateway(self._loaded, self._access) as opened:
            await McpFront(opened).serve_lines(
                Caller("ada", "stdio"), lines(), lambda line: answers.append(json.loads(line))
            )
        return answers


@pytest.fixture
def wire(access: Access, document: Document) -> Wire:
    return Wire(access, document)


CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HELLO = ask("initialize", 0, protocolVersion=HANDSHAKE[0], **CLIENT)


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_the_version_that_a_client_wants_is_spoken(wire: Wire, version: str) -> None:
    [answer] = await wire.say(ask("initialize", protocolVersion=version, **CLIENT))
    assert answer["result"]["protocolVersion"] == version


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        ([], -32600),
        ([ask("ping")], -32600),
        ({"id": 1, "method": "ping"}, -32600),
        (ask("no/such"), -32601),
        (ask("tools/call"), -32602),
        (ask("tools/call", name="no_such"), -32602),
        (ask("tools/call", name="node_drain"), -32602),
    ],
)
async def test_what_is_not_understood_is_answered_with_its_code(
    wire: Wire, line: Any, code: int
) -> None:
    answers = await wire.say(HELLO, line)
    [error] = [answer["error"] for answer in answers if "error" in answer]
    assert error["code"] == code


async def test_an_operation_has_one_name_as_a_tool(wire: Wire, document: Document) -> None:
    """Under its name elsewhere it is no tool, and is not carried out."""
    call = ask("tools/call", 1, name="report.run", arguments={"name": "nodes"})
    answers = await wire.say(HELLO, call)
    assert answers[-1]["error"]["code"] == -32602
    [record] = audited(document)
    assert (record["stage"], record["outcome"]) == ("outcome", "denied")
    assert record["operation"] == "report.run"


async def test_tools_wait_for_the_handshake(wire: Wire) -> None:
    [early] = await wire.say(ask("tools/list"))
    assert "error" in early


async def test_what_was_asked_before_the_input_ended_is_answered(
    wire: Wire, document: Document
) -> None:
    calls = [ask("tools/call", number, name="report_list") for number in range(1, 9)]
    answers = await wire.say(HELLO, *calls)
    assert {answer["id"] for answer in answers} == set(range(9))
    assert len(recorded(document)) == 8


async def test_a_call_that_is_no_longer_wanted_is_recorded(wire: Wire, document: Document) -> None:
    call = ask("tools/call", 7, name="report_run", arguments={"name": "nodes"})
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert 7 not in [answer["id"] for answer in await wire.say(HELLO, call, cancel)]
    assert [record["outcome"] for record in recorded(document)] in ([], ["ok"])


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_text_is_enough_to_understand_an_answer(wire: Wire, version: str) -> None:
    """Clients of old versions know nothing else."""
    hello = ask("initialize", 0, protocolVersion=version, **CLIENT)
    answers = await wire.say(hello, ask("tools/call", 1, name="report_list"))
    [result] = [answer["result"] for answer in answers if answer["id"] == 1]
    reports = json.loads(result["content"][0]["text"])["reports"]
    assert "nodes" in {report["name"] for report in reports}


def test_whose_name_is_used_without_a_token(document: Document) -> None:
    both = load(document)
    assert identity_for_mcp(both, "bob") == "bob"
    with pytest.raises(UsageError, match="--identity must name one"):
        identity_for_mcp(both, "")
    with pytest.raises(UsageError, match=r"not in auth\.tokens"):
        identity_for_mcp(both, "eve")
    alone = load(changed("auth.tokens", document["auth"]["tokens"][:1], document))
    assert identity_for_mcp(alone, "") == "ada"
    with pytest.raises(UsageError, match=r"listen\.mcp\.stdio"):
        identity_for_mcp(load(changed("listen.mcp.stdio", False, document)), "ada")


@pytest.mark.workflow
async def test_a_list_of_ten_thousand_pods_answers_in_one_screen(
    front: Front, access: Access
) -> None:
    """Whoever goes on by the cursor has seen each of them once."""
    async with connect(access) as api:
        await api.create(resource("namespaces"), {"metadata": {"name": "many"}})
        account = {"metadata": {"name": "default"}}
        await api.create(resource("serviceaccounts"), account, namespace="many")
        for start in range(0, 10_000, 200):
            await asyncio.gather(
                *(
                    api.create(resource("pods"), pod(number), namespace="many")
                    for number in range(start, start + 200)
                )
            )
    async with over_http(front, MODERN) as client:
        seen: set[str] = set()
        wish: dict[str, Any] = {}
        for _ in range(400):
            answer = await client.call_tool("pods", {"namespace": "many", "answer": wish})
            found = answer.structured_content
            assert len(json.dumps(found, separators=(",", ":"))) <= wish.get("budget", 8192)
            assert CANARY not in str(answer.content)
            seen |= {each["name"] for each in found["pods"]}
            if not wish:
                assert found["_answer"]["shown"]["pods"].endswith("of 10000")
            if found.get("_answer", {"complete": True})["complete"]:
                break
            wish = {"cursor": found["_answer"]["cursor"], "budget": 1 << 20}
        assert len(seen) == 10_000
        names = {"fields": ["pods.name"], "budget": 1 << 20}
        answer = await client.call_tool("pods", {"namespace": "many", "answer": names})
        assert len(answer.structured_content["pods"]) == 10_000
        for tool, arguments in (("report_run", {"name": "nodes"}), ("cyberspace_info", {})):
            answer = await client.call_tool(tool, arguments)
            assert len(json.dumps(answer.structured_content, separators=(",", ":"))) <= 8192


CANARY = "c4n4ry-7f3a"


def pod(number: int) -> dict[str, Any]:
    environment = [{"name": "DB_PASSWORD", "value": CANARY}]
    container = {"name": "c", "image": "busybox", "env": environment}
    metadata = {"name": f"web-{number}", "annotations": {"password": CANARY}}
    return {"metadata": metadata, "spec": {"containers": [container]}}
