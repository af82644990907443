"""What a spec asks of the kubelet, on each host that runs real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kvestigate.client.api import PODS, Api
from kvestigate.node.agent import Agent
from kvestigate.node.config import NodeConfig
from tests.node.conftest import MakeHost, Object, in_phase, pod, shell, state_of, until


@pytest.fixture
async def agent(api: Api, make_host: MakeHost) -> AsyncIterator[Agent]:
    async with Agent(api, make_host("here"), NodeConfig("here")) as agent:
        yield agent


async def ended(api: Api, *containers: Object, **spec: Any) -> Object:
    """A pod that was run to its end."""
    await api.create(PODS, pod("p", *containers, restartPolicy="Never", **spec))
    return await until(api, "p", in_phase("Succeeded", "Failed"))


@pytest.mark.parametrize(
    ("script", "policy", "message"),
    [
        ("echo out; echo err >&2; exit 1", "File", ""),
        ("echo out; sleep 0.01; echo err >&2; exit 1", "FallbackToLogsOnError", "out\nerr\n"),
        ("echo out", "FallbackToLogsOnError", ""),
        ("echo out; echo own >/dev/termination-log; exit 1", "FallbackToLogsOnError", "own\n"),
        (
            "seq 1000 1099; exit 1",
            "FallbackToLogsOnError",
            "".join(f"{number}\n" for number in range(1020, 1100)),
        ),
        ("printf %03000d 7; exit 1", "FallbackToLogsOnError", f"{7:02048d}"),
        ("printf %05000d 7 >/dev/termination-log", "File", f"{7:04096d}"),
    ],
    ids=["file", "log", "success", "own", "lines", "bytes", "end of the file"],
)
async def test_what_a_container_says_last(
    api: Api, agent: Agent, script: str, policy: str, message: str
) -> None:
    done = await ended(api, shell(script, terminationMessagePolicy=policy))
    assert state_of(done)["terminated"].get("message", "") == message


async def test_containers_share_the_room_for_their_last_words(api: Api, agent: Agent) -> None:
    loud = shell("printf %05000d 7 >/dev/termination-log")
    done = await ended(api, *({**loud, "name": name} for name in "abcd"))
    assert len(state_of(done, "d")["terminated"]["message"]) == 12 * 1024 // 4
