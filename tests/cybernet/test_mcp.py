"""The MCP front: with the official client, and line by line where that client is too polite."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kvestigate.client.access import Access
from kvestigate.cybernet.mcp import VERSIONS, McpSession
from kvestigate.cybernet.serving import gateway, identity_for_mcp
from kvestigate.errors import UsageError
from tests.cybernet.conftest import Document, audited, changed, load, recorded

# Importing the official client takes most of a second: that is for the worker that needs it.
if TYPE_CHECKING:
    from mcp import StdioServerParameters


@pytest.fixture
def command(access: Access, document: Document, tmp_path: Path) -> StdioServerParameters:
    from mcp import StdioServerParameters

    config = tmp_path / "space.yaml"
    config.write_text(yaml.safe_dump(document))
    words = ["-m", "kvestigate", "cybernet", "mcp-server", "--config", str(config)]
    kubeconfig = ["--identity", "ada", "--kubeconfig", str(access.files[0])]
    return StdioServerParameters(command=sys.executable, args=[*words, *kubeconfig])


async def test_the_official_client_lists_and_calls_tools(
    command: StdioServerParameters, document: Document
) -> None:
    from mcp import ClientSession
    from mcp.client.stdio import stdio_client

    async with stdio_client(command) as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        assert begun.server_info.name == "kvestigate-research-agents"
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(tools) == {"report_run", "report_list", "pods"}
        assert tools["report_run"].input_schema["required"] == ["name"]
        assert all((tool.output_schema or {})["type"] == "object" for tool in tools.values())
        annotations = tools["report_run"].annotations
        assert annotations is not None
        assert annotations.read_only_hint
        found = await session.call_tool("report_run", {"name": "nodes"})
        assert not found.is_error
        assert found.structured_content is not None
        assert found.structured_content["report"]["nodes"] == []
        refused = await session.call_tool("report_run", {"name": "nodse"})
        assert refused.is_error
        await session.send_ping()
    records = recorded(document)
    assert [it["outcome"] for it in records] == ["ok", "denied"]
    assert {(it["identity"], it["remote"]) for it in records} == {("ada", "stdio")}


async def test_a_client_that_tries_newer_ways_first_finds_ours(
    command: StdioServerParameters,
) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import stdio_client

    async with Client(stdio_client(command), mode="auto") as client:
        assert "pods" in {tool.name for tool in (await client.list_tools()).tools}


class Wire:
    """One session in process."""

    def __init__(self, access: Access, document: Document) -> None:
        self._access = access
        self._loaded = load(document)

    async def say(self, *messages: Any) -> list[Any]:
        """What is answered to these lines, in the order of the answers."""
        answers: list[Any] = []

        async def lines() -> AsyncIterator[bytes]:
            for message in messages:
                raw = message if isinstance(message, bytes) else json.dumps(message).encode()
                yield raw + b"\n"

        async with gateway(self._loaded, self._access) as opened:
            session = McpSession(opened, "ada", lambda line: answers.append(json.loads(line)))
            await session.run(lines())
        return answers


@pytest.fixture
def wire(access: Access, document: Document) -> Wire:
    return Wire(access, document)


def ask(method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


HELLO = ask("initialize", 0, protocolVersion=VERSIONS[0], capabilities={}, clientInfo={})


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_version_that_a_client_wants_is_spoken(wire: Wire, version: str) -> None:
    [answer] = await wire.say(ask("initialize", protocolVersion=version))
    assert answer["result"]["protocolVersion"] == version


async def test_a_version_that_is_not_known_is_answered_with_the_newest(wire: Wire) -> None:
    [answer] = await wire.say(ask("initialize", protocolVersion="2099-01-01"))
    assert answer["result"]["protocolVersion"] == VERSIONS[0]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        ([], -32600),
        ([ask("ping")], -32600),
        ({"id": 1, "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": 1}, -32600),
        ({"jsonrpc": "2.0", "id": [1], "method": "ping"}, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, -32600),
        (ask("no/such"), -32601),
        (ask("initialize"), -32602),
        (ask("tools/call"), -32602),
        (ask("tools/call", name="no_such"), -32602),
        (ask("tools/call", name="node_drain"), -32602),
    ],
)
async def test_what_is_not_understood_is_answered_with_its_code(
    wire: Wire, line: Any, code: int
) -> None:
    answers = await wire.say(HELLO, line)
    assert answers[-1]["error"]["code"] == code


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
    assert early["error"]["code"] == -32600


async def test_notifications_and_answers_are_not_answered(wire: Wire) -> None:
    quiet: list[Any] = [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [9]}},
        {"jsonrpc": "2.0", "id": 4, "result": {}},
        b"",
    ]
    assert len(await wire.say(HELLO, *quiet)) == 1


async def test_a_call_that_is_no_longer_wanted_is_recorded_and_not_answered(
    wire: Wire, document: Document
) -> None:
    call = ask("tools/call", 7, name="report_run", arguments={"name": "nodes"})
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    assert [it["id"] for it in await wire.say(HELLO, call, cancel)] == [0]
    [record] = recorded(document)
    assert record["outcome"] == "ok"


async def test_several_requests_in_a_line_where_the_version_has_that(wire: Wire) -> None:
    hello = ask("initialize", 0, protocolVersion="2025-03-26")
    batch = [ask("ping", 1), {"jsonrpc": "2.0", "method": "notifications/x"}, ask("ping", "b")]
    answers = await wire.say(hello, batch)
    assert [it["id"] for it in answers[1]] == [1, "b"]


async def test_an_old_client_gets_text_alone(wire: Wire) -> None:
    hello = ask("initialize", 0, protocolVersion="2024-11-05")
    call = ask("tools/call", 1, name="report_list")
    answers = await wire.say(hello, ask("tools/list", 2), call)
    results = {it["id"]: it["result"] for it in answers}
    assert "annotations" not in results[2]["tools"][0]
    assert "structuredContent" not in results[1]
    assert "nodes" in results[1]["content"][0]["text"]


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
