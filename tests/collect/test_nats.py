"""The NATS sink on a real server with JetStream."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import nats
import pytest

from kvestigate.collect.lanes import Lane
from kvestigate.collect.sinks.interface import Unavailable
from kvestigate.collect.sinks.nats import NatsSink
from tests.client.scripted import InstantClock
from tests.upstream.processes import free_ports

SUBJECT = "workloads"


def event(number: int) -> bytes:
    return msgspec.json.encode({"workload_name": f"web-{number}", "id": f"uid@{number}"})


class Broker:
    """A NATS server that can end and come back at the same place."""

    def __init__(self, binary: str, directory: Path) -> None:
        self._binary = binary
        self._directory = directory
        (self._port,) = free_ports(1)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._port}"

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            self._binary,
            *("--jetstream", "--store_dir", str(self._directory)),
            *("--addr", "127.0.0.1", "--port", str(self._port)),
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            if b"Server is ready" in line:
                return
        raise AssertionError("the NATS server ended before it was ready")

    async def stop(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.communicate()

    async def stored(self) -> list[str]:
        """The ids of all messages of the stream, in order."""
        client = await nats.connect(self.url)
        try:
            jetstream = client.jetstream()
            info = await jetstream.stream_info("K8S")
            messages = [
                await jetstream.get_msg("K8S", number)
                for number in range(1, info.state.messages + 1)
            ]
            return [(message.headers or {})["Nats-Msg-Id"] for message in messages]
        finally:
            await client.close()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    beside = str(Path(sys.executable).parent)
    binary = shutil.which("nats-server", path=beside) or shutil.which("nats-server")
    if binary is None:
        pytest.skip("there is no nats-server for this machine")
    broker = Broker(binary, tmp_path)
    await broker.start()
    yield broker
    await broker.stop()


@asynccontextmanager
async def sink_of(broker: Broker, stream: str = "K8S") -> AsyncIterator[NatsSink]:
    sink = NatsSink(broker.url, SUBJECT, stream=stream)
    try:
        yield sink
    finally:
        await sink.aclose()


async def test_events_are_stored_in_order_and_repeats_once(broker: Broker) -> None:
    async with sink_of(broker) as sink:
        await sink.send([event(number) for number in range(600)])
    async with sink_of(broker) as restarted:
        await restarted.send([event(number) for number in range(590, 610)])
    assert await broker.stored() == [f"uid@{number}" for number in range(610)]


async def test_a_subject_that_no_stream_takes_says_the_way_out(broker: Broker) -> None:
    async with sink_of(broker, stream="") as sink:
        with pytest.raises(Unavailable, match=r"no stream .* accepts the subject") as caught:
            await sink.send([event(1)])
    assert "--nats-stream" in (caught.value.hint or "")


async def test_a_server_that_is_away_is_waited_for_and_nothing_is_missing(broker: Broker) -> None:
    said: list[str] = []
    async with sink_of(broker) as sink:
        lane = Lane(sink, settled=lambda: None, warn=said.append, clock=InstantClock())
        sending = asyncio.ensure_future(lane.run())
        await lane.put(1, event(1))
        await lane.empty.wait()
        await broker.stop()
        await lane.put(2, event(2))
        await broker.start()
        await lane.put(3, event(3))
        await lane.empty.wait()
        sending.cancel()
    assert await broker.stored() == ["uid@1", "uid@2", "uid@3"]
    assert (lane.delivered, lane.dropped) == (3, 0)


async def test_a_failure_says_why_and_no_secrets() -> None:
    sink = NatsSink("nats://me:topsecret@127.0.0.1:1", SUBJECT)
    with pytest.raises(Unavailable) as caught:
        await sink.send([event(1)])
    assert caught.value.message.startswith("nats://127.0.0.1:1: ")
    assert "refused" in caught.value.message.lower() or "connect" in caught.value.message.lower()
    assert "topsecret" not in str(caught.value)
