"""An agent without a model: it knows a task and reads what the tools say of themselves.

It finds tools by the words of their descriptions, and what it may say by their schemas. So the
whole way from a workspace to its result can be gone by whoever reads nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import jsonschema_rs
import pytest
from hypothesis import strategies

from tests.cybernet.conftest import TOKENS, Document, changed
from tests.cybernet.served import ServedSpace
from tests.hosts_cluster import HostsCluster

if TYPE_CHECKING:
    from mcp import Client

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.geteuid() != 0, reason="tmpfs can only be mounted by root"),
]

ALLOWED = [
    "report.run",
    *(
        f"workspace.{verb}"
        for verb in (
            "create", "put_text", "get_text", "edit", "list_files", "run", "ps", "logs", "destroy",
        )
    ),
]  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    made = HostsCluster(tmp_path_factory.mktemp("agent"), nodes=2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def space(cluster: HostsCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedSpace]:
    document: Document = changed("operations.allow", ALLOWED)
    document = changed("constraints.hosts", {"allow_names": ["node-2"]}, document)
    document = changed("constraints.workspace.storage.max_tmpfs_size", "64Mi", document)
    document = changed("quotas.max_active_workspaces_per_identity", 1, document)
    document = changed("runs", {"cpu": "2", "memory": "1Gi"}, document)
    audit = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    document = changed("audit.path", str(audit), document)
    with ServedSpace(document, cluster.access()) as served:
        yield served


class Agent:
    """Uses tools by what they say."""

    def __init__(self, client: Client, tools: list[Any]) -> None:
        self._client = client
        self._tools = tools

    def tool(self, *words: str) -> Any:
        """The one tool whose description has all of these words."""
        found = [
            tool
            for tool in self._tools
            if all(word in tool.description.partition(".")[0].lower() for word in words)
        ]
        assert len(found) == 1, (words, [tool.name for tool in found])
        return found[0]

    async def use(self, tool: Any, **own: Any) -> dict[str, Any]:
        """Call a tool with what the task is about; everything else is chosen by the schema."""
        arguments = filled(tool.input_schema, tool.input_schema, own)
        jsonschema_rs.validate(tool.input_schema, arguments)
        answer = await self._client.call_tool(tool.name, arguments)
        assert not answer.is_error, answer.content
        jsonschema_rs.validate(tool.output_schema, answer.structured_content)
        found: dict[str, Any] = answer.structured_content
        return found

    async def refusal(self, tool: str, arguments: dict[str, Any]) -> str:
        """What a wrong call is answered with."""
        answer = await self._client.call_tool(tool, arguments)
        assert answer.is_error, (tool, arguments)
        [content] = answer.content
        assert content.type == "text"
        message: str = json.loads(content.text)["error"]["message"]
        return message


def filled(schema: dict[str, Any], top: dict[str, Any], own: dict[str, Any]) -> Any:
    """A value by its schema: what is required, and what is the agent's own."""
    if "$ref" in schema:
        schema = top["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "enum" in schema:
        return schema["enum"][0]
    if "pattern" in schema:
        return fitting(schema["pattern"])
    if schema.get("type") != "object":
        raise AssertionError(f"nothing says what to write: {schema}")
    chosen = {
        name: filled(described, top, {})
        for name, described in schema["properties"].items()
        if name in schema["required"] and name not in own
    }
    return {**chosen, **own}


def fitting(pattern: str) -> str:
    """The shortest text that hypothesis finds for a pattern."""
    from hypothesis import Phase, find, settings

    quick = settings(phases=[Phase.generate, Phase.shrink], database=None)
    alphabet = strategies.characters(codec="ascii")
    texts = strategies.from_regex(pattern, fullmatch=True, alphabet=alphabet)
    return find(texts, lambda text: "\n" not in text, settings=quick)


@asynccontextmanager
async def agent(space: ServedSpace) -> AsyncIterator[Agent]:
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"authorization": f"Bearer {TOKENS['ada']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{space.url}/mcp", http_client=http)) as client,
    ):
        yield Agent(client, (await client.list_tools()).tools)


SCRIPT = (
    "import pathlib\nprint('counting')\npathlib.Path('sum.txt').write_text(str(sum(range(11))))\n"
)


async def test_an_agent_that_reads_only_schemas_comes_to_its_result(space: ServedSpace) -> None:
    async with agent(space) as one:
        told = await one.use(one.tool("what you may do"))
        assert [node["name"] for node in told["free_nodes"]] == ["node-2"]
        made = await one.use(one.tool("make a workspace"))
        workspace = {"name": made["plan"]["workspace"], "node": made["plan"]["node"]}
        mine = {"workspace": workspace}
        try:
            write = one.tool("write a small text file")
            await one.use(write, **mine, path="code/count.py", text=SCRIPT.replace("11", "9"))
            replace = one.tool("replace a text")
            await one.use(replace, **mine, path="code/count.py", old="range(9)", new="range(11)")
            start = one.tool("start a process")
            await one.use(start, **mine, tag="count", command=["python3", "count.py"])
            await ended(one, mine)
            log = await one.use(one.tool("log of a run"), **mine, tag="count")
            assert log["text"] == "counting\n"
            log = await one.use(one.tool("log of a run"), **mine, tag="count", grep="nothing|else")
            assert log["text"] == ""
            listed = await one.use(one.tool("list the files"), **mine)
            assert {file["path"] for file in listed["files"]} >= {"count.py", "sum.txt"}
            result = await one.use(one.tool("read a small text file"), **mine, path="code/sum.txt")
            assert (result["text"], result["next_offset"]) == ("55", None)
        finally:
            await one.use(one.tool("remove"), **mine)
        told = await one.use(one.tool("what you may do"))
        assert told["workspaces"] == []


async def ended(one: Agent, mine: dict[str, Any]) -> None:
    async with asyncio.timeout(60):
        while True:
            [run] = (await one.use(one.tool("list the runs"), **mine))["runs"]
            if run["state"] != "running":
                assert run["exit_code"] == 0
                return


MINE = {"name": "agent-a", "node": "node-2"}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("workspace_create", {}, "workspace"),
    ("workspace_create", {"workspace": {"name": "agent-b", "node": "node-1"}}, "node-2"),
    ("workspace_create", {"workspace": {"name": "mine", "node": "node-2"}}, "^agent-"),
    ("workspace_create", {"workspace": {**MINE, "storage": {"mode": "disk"}}}, "all-tmpfs, hybrid"),
    ("workspace_create", {"workspace": {**MINE, "storage": {"tmpfs_size": "1Gi"}}}, "64M"),
    ("workspace_create", {"workspace": {**MINE, "storage": {"tmpfs_size": "much"}}}, "500G"),
    ("workspace_create", {"workspace": {**MINE, "gpu": {"reserve": 8}}}, "at most 4"),
    ("workspace_create", {"workspace": {**MINE, "gpu": {"cordon_node": True}}}, "false"),
    ("workspace_create", {"workspace": {**MINE, "root": "/"}}, "leave it out"),
    ("workspace_create", {"workspace": {**MINE, "nodes": "x"}}, "did you mean node"),
    ("workspace_create", {"workspace": {"name": "agent-b", "node": "node-2"}}, "destroy a"),
    ("workspace_destroy", {"workspace": {"name": "agent-a", "node": "node-9"}}, "node-2"),
    ("workspace_put_text", {"workspace": MINE, "path": "/etc/passwd", "text": ""}, "relative"),
    ("workspace_put_text", {"workspace": MINE, "path": "x.py", "text": ""}, "code/x.py"),
    ("workspace_put_text", {"workspace": MINE, "path": "logs/x", "text": ""}, "use code"),
    ("workspace_get_text", {"workspace": MINE, "path": "../../etc/passwd"}, "relative to"),
    ("workspace_edit", {"workspace": MINE, "path": "code/a", "old": "z", "new": ""}, "get_text"),
    ("workspace_run", {"workspace": MINE, "tag": "t", "command": ["no-such"]}, "sync it"),
    ("workspace_run", {"workspace": MINE, "tag": "t", "command": ["true"], "limits": {"cpu": "9"}},
     "more than 2"),
    ("workspace_logs", {"workspace": MINE, "tag": "none"}, "its runs are"),
    ("report_run", {"name": "nodse"}, "nodes"),
    ("workspace_ps", {"workspace": {"name": "agent-z", "node": "node-2"}}, "workspace.create"),
]  # fmt: skip


async def test_wrong_turns_are_refused_with_what_would_be_right(space: ServedSpace) -> None:
    async with agent(space) as one:
        mine = {"workspace": {**MINE, "storage": {"tmpfs_size": "1Mi"}}}
        await one.use(one.tool("make a workspace"), **mine)
        write = one.tool("write a small text file")
        await one.use(write, workspace=MINE, path="code/a", text="abc")
        try:
            assert len(WRONG) >= 20
            for tool, arguments, way_out in WRONG:
                message = await one.refusal(tool, arguments)
                assert way_out in message, (tool, arguments, message)
        finally:
            await one.use(one.tool("remove"), workspace=MINE)
