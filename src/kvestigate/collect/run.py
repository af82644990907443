"""A collector from start to stop: follow, send, settle, and tell how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.collect.checkpoint import Checkpoint, Mark
from kvestigate.collect.collector import Collector
from kvestigate.collect.health import Health
from kvestigate.collect.kinds import WorkloadKind
from kvestigate.collect.lanes import BATCH, CAPACITY, Lane
from kvestigate.collect.seen import SeenCache
from kvestigate.collect.sinks.interface import Sink
from kvestigate.collect.watching import Follower, Following, sources_of
from kvestigate.errors import UsageError
from kvestigate.http.server import Server, serve

DRAIN = 10.0
"""Seconds that sinks get to take what is on its way when the collector is told to stop."""


@dataclass(frozen=True, slots=True)
class Outlet:
    """A sink and how it is served."""

    sink: Sink
    batch: int = BATCH
    capacity: int = CAPACITY


@dataclass(frozen=True, slots=True)
class CollectOptions:
    kinds: tuple[WorkloadKind, ...]
    namespaces: tuple[str, ...] = ()
    """Empty for all."""
    following: Following = field(default_factory=Following)
    checkpoint: Path | None = None
    listen: tuple[str, int] | None = None
    """Where health and metrics are served, if at all."""


async def collect(
    access: Access,
    options: CollectOptions,
    outlets: Sequence[Outlet],
    stop: asyncio.Event,
    say: Callable[[str], None],
) -> None:
    """Run until `stop` is set; `say` is told what an operator should know, line by line."""
    async with AsyncExitStack() as stack:
        checkpoint = stack.enter_context(closing(Checkpoint(options.checkpoint)))
        api = await stack.enter_async_context(connect(access))
        collector = Collector(checkpoint)
        lanes = [
            Lane(
                outlet.sink,
                settled=collector.settle,
                warn=say,
                capacity=outlet.capacity,
                batch=outlet.batch,
            )
            for outlet in outlets
        ]
        collector.attach(lanes)
        seen = SeenCache()
        followers = [
            Follower(api, source, checkpoint, collector.emit, say, options.following, seen)
            for source in await sources_of(api, options.kinds, options.namespaces)
        ]
        if options.listen is not None:
            health = Health(collector, lanes, followers)
            server = await stack.enter_async_context(await _serving(health, *options.listen))
            say(f"health and metrics at http://{server.address[0]}:{server.address[1]}")
        async with Supervisor("sinks") as senders:
            for lane in lanes:
                senders.spawn(lane.sink.name, lane.run())
            async with Supervisor("streams") as streams:
                for follower in followers:
                    streams.spawn(follower.source.name, follower.run())
                await stop.wait()
            if await collector.drain(DRAIN):
                _keep_positions(checkpoint, followers)
    for lane in lanes:
        if lost := lane.dropped + lane.rejected:
            say(f"{lane.sink.name}: {lost} of {collector.events} events were lost")


async def _serving(health: Health, host: str, port: int) -> Server:
    try:
        return await serve(health.handle, host=host, port=port)
    except OSError as error:
        raise UsageError(f"--listen: {host}:{port} cannot be used: {error.strerror}") from error


def _keep_positions(checkpoint: Checkpoint, followers: Sequence[Follower]) -> None:
    """Bookmarks count, too: a quiet stream need not go back to its last event."""
    checkpoint.settle(
        [
            Mark(follower.source.name, follower.position)
            for follower in followers
            if follower.position
        ]
    )
