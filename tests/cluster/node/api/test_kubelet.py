"""The kubelet's HTTP API, spoken to as an API server does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.cluster.node.agent.agent import Agent
from kvestigate.cluster.node.config import NodeConfig
from kvestigate.cluster.node.hosts.directory import DirectoryHost
from kvestigate.http.message import WebSocket
from kvestigate.http.pool import UpgradeRefused
from tests.cluster.node.conftest import (
    LONG,
    PYTHON,
    SHOUT,
    in_phase,
    is_ready,
    lone_agent,
    pod,
    says,
    shell,
    until,
)
from tests.cluster.node.kubelet import Kubelet

V5 = "v5.channel.k8s.io"
MAIN = "/default/p/main"


@pytest.fixture
async def agent(api: Api, tmp_path: Path) -> AsyncIterator[Agent]:
    host = DirectoryHost(tmp_path / "here", now=time.time)
    async with lone_agent(api, host, NodeConfig("here")) as agent:
        yield agent


@pytest.fixture
async def kubelet(agent: Agent, api: Api) -> AsyncIterator[Kubelet]:
    """With a pod that has said three lines and goes on."""
    main = shell("echo one; echo two; echo three; cat", stdin=True)
    await api.create(PODS, pod("p", main))
    await until(api, "p", is_ready)
    async with Kubelet(agent) as kubelet:
        stream = await kubelet.open(f"/attach{MAIN}", "output=1", V5)
        await stream.close()
        yield kubelet


async def heard(socket: WebSocket) -> dict[int, bytes]:
    """All that comes on each channel, to the end."""
    channels: dict[int, bytes] = {}
    async with asyncio.timeout(LONG):
        while (message := await socket.receive()) is not None:
            assert isinstance(message, bytes)
            channels[message[0]] = channels.get(message[0], b"") + message[1:]
    return channels


async def until_said(kubelet: Kubelet, lines: int) -> str:
    """The log, once it has so many lines: output takes a moment from the pipe to the file."""
    async with asyncio.timeout(LONG):
        while True:
            text = await kubelet.text(f"/containerLogs{MAIN}")
            if text.count("\n") >= lines:
                return text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "one\ntwo\nthree\n"),
        ("tailLines=1", "three\n"),
        ("limitBytes=5", "one\nt"),
        ("sinceSeconds=3600&tailLines=2", "two\nthree\n"),
        ("sinceTime=2099-01-01T00:00:00Z", ""),
    ],
)
async def test_logs(kubelet: Kubelet, query: str, expected: str) -> None:
    await until_said(kubelet, 3)
    assert await kubelet.text(f"/containerLogs{MAIN}", query) == expected


@pytest.mark.parametrize(
    ("path", "query", "status", "message"),
    [
        ("/containerLogs/default/nope/main", "", 404, 'pod "default/nope" not found'),
        ("/containerLogs/default/p/nope", "", 404, 'container "nope" not found in pod "p"'),
        (f"/containerLogs{MAIN}", "previous=true", 400, 'terminated container "main" in pod "p"'),
        (f"/containerLogs{MAIN}", "tailLines=x", 400, 'tailLines: "x" is not a number'),
        (f"/exec{MAIN}", "command=true", 400, "Upgrade request required"),
        ("/nope", "", 404, "not found"),
    ],
)
async def test_what_cannot_be_answered_is_said(
    kubelet: Kubelet, path: str, query: str, status: int, message: str
) -> None:
    got, text = await kubelet.get(path, query)
    assert got == status
    assert message in text


@pytest.mark.parametrize("protocol", [V5, "v4.channel.k8s.io"])
async def test_exec_carries_output_and_exit_code(kubelet: Kubelet, protocol: str) -> None:
    query = "command=sh&command=-c&command=echo+out;echo+err>%262;exit+4&output=1&error=1"
    socket = await kubelet.open(f"/exec{MAIN}", query, protocol)
    said = await heard(socket)
    assert (said[1], said[2]) == (b"out\n", b"err\n")
    status = msgspec.json.decode(said[3])
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "4"}]


async def test_exec_takes_stdin_and_its_end(kubelet: Kubelet) -> None:
    socket = await kubelet.open(f"/exec{MAIN}", "command=cat&input=1&output=1", V5)
    await socket.send(b"\x00typed")
    await socket.send(b"\xff\x00")
    said = await heard(socket)
    assert said[1] == b"typed"
    assert msgspec.json.decode(said[3])["status"] == "Success"


async def test_exec_of_no_program_is_a_failure_on_the_error_channel(kubelet: Kubelet) -> None:
    socket = await kubelet.open(f"/exec{MAIN}", "command=no-such-program&output=1", V5)
    status: Any = msgspec.json.decode((await heard(socket))[3])
    assert status["reason"] == "InternalError"
    assert "no-such-program" in status["message"]


@pytest.mark.parametrize("how", ["told", "gone"])
async def test_stdin_ends_with_the_first_attach_where_the_spec_says_so(
    kubelet: Kubelet, agent: Agent, api: Api, how: str
) -> None:
    main = shell("cat; echo end of input", stdin=True, stdinOnce=True)
    await api.create(PODS, pod("once", main, restartPolicy="Never"))
    await until(api, "once", is_ready)
    socket = await kubelet.open("/attach/default/once/main", "input=1&output=1", V5)
    await socket.send(b"\x00typed\n")
    if how == "told":
        await socket.send(b"\xff\x00")
        assert (await heard(socket))[1] == b"typed\nend of input\n"
    else:
        await says(agent, "once", "typed")
        await socket.close()
        await says(agent, "once", "end of input")
    await until(api, "once", in_phase("Succeeded"))


async def test_an_unknown_subprotocol_is_refused(kubelet: Kubelet) -> None:
    with pytest.raises(UpgradeRefused) as refusal:
        await kubelet.open(f"/exec{MAIN}", "command=true", "v9.channel.k8s.io")
    assert refusal.value.status == 400


async def test_attach_joins_the_containers_own_streams(kubelet: Kubelet) -> None:
    socket = await kubelet.open(f"/attach{MAIN}", "input=1&output=1", V5)
    await socket.send(b"\x00echoed\n")
    async with asyncio.timeout(LONG):
        said = b""
        while b"echoed\n" not in said:
            message = await socket.receive()
            assert isinstance(message, bytes)
            said += message[1:]
    await socket.close()


async def test_a_port_is_forwarded_to_what_listens(
    kubelet: Kubelet, agent: Agent, api: Api
) -> None:
    await api.create(PODS, pod("shouter", {"command": [PYTHON, "-c", SHOUT]}))
    await until(api, "shouter", is_ready)
    await says(agent, "shouter", "up")
    path = "/portForward/default/shouter"
    socket = await kubelet.open(path, "port=8080", "v4.channel.k8s.io")
    await socket.send(b"\x00hello\n")
    said = await heard(socket)
    greeting = (8080).to_bytes(2, "little")
    assert said == {0: greeting + b"HELLO\n", 1: greeting}


async def test_a_port_that_nobody_listens_on_is_an_error(kubelet: Kubelet) -> None:
    socket = await kubelet.open(f"/portForward{MAIN}", "port=1", "v4.channel.k8s.io")
    async with asyncio.timeout(LONG):
        said = b""
        while b"error forwarding port 1" not in said:
            message = await socket.receive()
            assert isinstance(message, bytes)
            said += message
    await socket.close()


async def test_the_node_tells_of_itself(kubelet: Kubelet) -> None:
    assert await kubelet.text("/healthz") == "ok"
    for path in ("/pods", "/runningpods/"):
        listed = msgspec.json.decode(await kubelet.text(path))
        assert [one["metadata"]["name"] for one in listed["items"]] == ["p"]
    summary = msgspec.json.decode(await kubelet.text("/stats/summary"))
    assert summary["node"]["nodeName"] == "here"
    ((container,),) = [one["containers"] for one in summary["pods"]]
    assert container["memory"]["workingSetBytes"] > 0
    metrics = await kubelet.text("/metrics/resource")
    labels = '{container="main",namespace="default",pod="p"}'
    assert f"container_memory_working_set_bytes{labels}" in metrics
    assert "node_cpu_usage_seconds_total" in metrics


@pytest.mark.parametrize(("token", "status"), [("", 401), ("wrong", 401), ("right", 200)])
async def test_a_token_is_asked_for_where_one_is_set(
    api: Api, tmp_path: Path, token: str, status: int
) -> None:
    host = DirectoryHost(tmp_path / "here", now=time.time)
    async with (
        lone_agent(api, host, NodeConfig("here", token="right")) as agent,
        Kubelet(agent, token=token) as kubelet,
    ):
        assert (await kubelet.get("/healthz"))[0] == status
