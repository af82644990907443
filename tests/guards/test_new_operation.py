"""A new operation is one file and one line of the catalog, and then it is everywhere.

The page on extending has the file and the line. They are added to a copy of the sources, and the
operation is called there by all three faces. It touches a node by a field that nobody could guess.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FLAG = "--i-understand-this-modifies-hosts"

GATEWAY = """
import asyncio, json, sys
from dataclasses import replace
from kvestigate import catalog
from kvestigate.aio.clock import WallClock
from kvestigate.cybernet.audit_log import AuditLog
from kvestigate.cybernet.gateway import Caller, Gateway
from kvestigate.cybernet.http import handler
from kvestigate.cybernet.mcp import McpFront
from kvestigate.cybernet.registry import offered
from kvestigate.cybernet.spec import read_cyberspace
from kvestigate.cybernet.tokens import digest
from kvestigate.http.message import Headers, Request

audit = sys.argv[1]
space = read_cyberspace({
    "apiVersion": "kvestigate.cybernet/v1", "kind": "Cyberspace", "metadata": {"name": "pool"},
    "auth": {"tokens": [{"identity": "ada", "sha256": digest("secret")}]},
    "operations": {"allow": ["rack.beacon"]},
    "constraints": {"hosts": {"allow_names": ["node-1"]}},
    "audit": {"path": audit},
})

async def http(gateway, path, body=None):
    headers = Headers([("authorization", "Bearer secret")])
    method = "GET" if body is None else "POST"
    answer = await handler(gateway)(
        Request(method, path, headers=headers, body=json.dumps(body or {}).encode())
    )
    return answer.status, json.loads(answer.body)

async def mcp(gateway, *messages):
    written = []
    async def lines():
        hello = {"protocolVersion": "2025-11-25", "capabilities": {},
                 "clientInfo": {"name": "test", "version": "1"}}
        yield json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize",
                          "params": hello}).encode() + b"\\n"
        for number, (method, params) in enumerate(messages, 1):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            yield json.dumps(message).encode() + b"\\n"
    await McpFront(gateway).serve_lines(Caller("ada", "stdio"), lines(), written.append)
    return {found["id"]: found["result"] for found in map(json.loads, written)}

async def main():
    operations = offered(space.allow, catalog.operations())
    gateway = Gateway(space, operations, None, AuditLog(space.audit), WallClock())
    call = "/api/v1/op/rack.beacon"
    print(json.dumps({
        "info": await http(gateway, "/info"),
        "allowed": await http(gateway, call, {"machine": "node-1", "seconds": 5}),
        "fenced": await http(gateway, call, {"machine": "node-9"}),
        "wrong": await http(gateway, call, {"machin": "node-1"}),
        "mcp": await mcp(
            gateway,
            ("tools/list", {}),
            ("tools/call", {"name": "rack_beacon", "arguments": {"machine": "node-1"}}),
            ("tools/call", {"name": "rack_beacon", "arguments": {"machine": "node-9"}}),
        ),
        "audit": [json.loads(line) for line in open(audit)],
    }))
    await gateway.close()

asyncio.run(main())
"""


def ran(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"PYTHONPATH": str(home / "src"), "HOME": str(home), "PATH": "/usr/bin:/bin"},
    )


@pytest.fixture(scope="module")
def faces(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    audit = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    done = ran(extended, "-c", GATEWAY, str(audit))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_line_has_it_with_its_help(extended: Path) -> None:
    assert "rack" in ran(extended, "-m", "kvestigate", "--help").stdout
    shown = ran(extended, "-m", "kvestigate", "rack", "beacon", "--help").stdout
    assert "Blink the locator light of a node." in shown
    assert "--seconds" in shown
    assert "How long it blinks." in shown
    assert "--apply" in shown
    assert FLAG in shown


def test_the_command_line_asks_for_its_confirmation(extended: Path) -> None:
    words = ("-m", "kvestigate", "rack", "beacon", "node-9", "-o", "json")
    planned = ran(extended, *words)
    assert json.loads(planned.stdout)["applied"] is False
    assert FLAG in planned.stderr
    done = ran(extended, *words, "--apply", FLAG)
    assert (done.returncode, json.loads(done.stdout)["applied"]) == (0, True)


def test_http_has_it_with_its_schema(faces: Any) -> None:
    status, info = faces["info"]
    _, offer = info["operations"]
    assert (status, offer["name"], offer["effect"]) == (200, "rack.beacon", "write")
    assert offer["parameters"]["required"] == ["machine"]
    assert offer["parameters"]["properties"]["seconds"]["description"] == "How long it blinks."
    assert faces["allowed"] == [
        200,
        {"machine": "node-1", "seconds": 5, "applied": True, "owner": "pool/ada"},
    ]


def test_its_node_is_fenced_whatever_the_field_is_called(faces: Any) -> None:
    status, refusal = faces["fenced"]
    assert status == 422
    assert "constraints.hosts.allow_names" in json.dumps(refusal)
    status, refusal = faces["wrong"]
    assert "machin: no such field" in json.dumps(refusal)
    assert "did you mean machine?" in json.dumps(refusal)


def test_mcp_has_it_by_the_same_rules(faces: Any) -> None:
    listed, allowed, fenced = (faces["mcp"][number] for number in ("1", "2", "3"))
    _, tool = listed["tools"]
    assert tool["name"] == "rack_beacon"
    assert tool["inputSchema"]["required"] == ["machine"]
    assert (allowed["isError"], allowed["structuredContent"]["applied"]) == (False, True)
    assert fenced["isError"]


def test_the_audit_log_says_what_it_touched(faces: Any) -> None:
    outcomes = [record for record in faces["audit"] if record["stage"] == "outcome"]
    assert [record["touched"]["nodes"] for record in outcomes[:2]] == [["node-1"], ["node-9"]]
    assert [record["decision"] for record in outcomes[:2]] == ["allow", "deny"]
