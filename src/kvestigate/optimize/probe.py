"""`optimize probe-gpu`: run `nvidia-smi` on every node, in rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from kvestigate.aio.clock import WALL, Clock
from kvestigate.client.access import Access
from kvestigate.client.connect import connect
from kvestigate.errors import KvestigateError, UsageError
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import Host, Hosts, reach
from kvestigate.operation import GROUP, duration, param
from kvestigate.optimize.activity import NodeWindow, node_window
from kvestigate.optimize.bill import Bill, bill
from kvestigate.optimize.collect import FleetSource, read
from kvestigate.optimize.model import Fleet
from kvestigate.optimize.smi import COMMAND, Reading, readings
from kvestigate.optimize.summary import Summary, summarize
from kvestigate.snapshot.price_files import HELP, load_prices
from kvestigate.snapshot.prices import DEFAULT, Prices
from kvestigate.snapshot.source import Progress

SCHEMA = "kvestigate.optimize.probe/v1"
_TOGETHER = 32
"""Nodes that run nvidia-smi at the same time."""
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    source: Annotated[FleetSource, GROUP]
    ghost_threshold: Annotated[
        float,
        param(
            "A node with allocated GPUs and a lower mean utilization is a ghost.", metavar="SHARE"
        ),
    ] = 0.05
    samples: Annotated[
        int,
        param(
            "How often every GPU is read; use 3 to 5 to confirm ghosts.",
            metavar="COUNT",
            lowest=1,
            highest=10_000,
        ),
    ] = 1
    interval: Annotated[
        float, duration("Time between samples; a number without a unit is seconds.")
    ] = 1.0
    prices: Annotated[Prices, param(HELP, metavar="FILE", parse=load_prices)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    schema: str = SCHEMA
    captured_at: datetime
    """When the allocation was read. UTC."""
    probed_at: datetime
    """When the first round began."""
    server: str
    """The cluster whose GPUs were read."""
    stated_by: str
    """The cluster whose allocation was read; a saved audit may be of another cluster."""
    ghost_threshold: float
    samples: int
    interval: float
    seconds: float
    """From the first round to the last."""
    summary: Summary
    bill: Bill
    nodes: tuple[NodeWindow, ...]


async def probe(
    access: Access,
    options: ProbeOptions,
    via: NodeAccess | None = None,
    progress: Progress | None = None,
    clock: Clock = WALL,
) -> Probe:
    _check(options)
    fleet = await read(access, options.source, progress)
    async with connect(access) as api:
        hosts = await reach(api, via or NodeAccess())
        rounds = _Rounds(fleet, hosts)
        began = latest = clock.now()
        for number in range(options.samples):
            if number:
                await clock.sleep(options.interval)
            latest = clock.now()
            await rounds.run()
            if progress is not None:
                progress("rounds", number + 1)
    nodes = tuple(
        node_window(
            node,
            rounds.readings[node.name],
            options.ghost_threshold,
            rounds.problems.get(node.name, ""),
        )
        for node in fleet.nodes
    )
    return Probe(
        captured_at=fleet.captured_at,
        probed_at=datetime.fromtimestamp(began, UTC),
        server=str(access.server),
        stated_by=fleet.server,
        ghost_threshold=options.ghost_threshold,
        samples=options.samples,
        interval=options.interval,
        seconds=latest - began,
        summary=summarize(nodes),
        bill=bill(
            nodes, {node.name: node.model for node in fleet.nodes}, options.prices or DEFAULT
        ),
        nodes=nodes,
    )


class _Rounds:
    """The readings and problems of the nodes so far."""

    def __init__(self, fleet: Fleet, hosts: Hosts) -> None:
        names = [node.name for node in fleet.nodes]
        self.readings: dict[str, list[tuple[Reading, ...]]] = {name: [] for name in names}
        self._hosts: Mapping[str, Host] = {
            name: hosts.nodes[name] for name in names if name in hosts.nodes
        }
        self.problems: dict[str, str] = {
            name: hosts.unreachable.get(name, "the node no longer exists")
            for name in names
            if name not in self._hosts
        }
        """Node -> its latest problem."""
        self._room = asyncio.Semaphore(_TOGETHER)

    async def run(self) -> None:
        await asyncio.gather(*(self._ask(name, host) for name, host in self._hosts.items()))

    async def _ask(self, name: str, host: Host) -> None:
        async with self._room:
            try:
                self.readings[name].append(await _read(host))
            except KvestigateError as error:
                self.problems[name] = error.message


async def _read(host: Host) -> tuple[Reading, ...]:
    done = await host.run(COMMAND, timeout=_PATIENCE)
    if done.exit_code:
        output = (done.stderr or done.stdout).decode("utf-8", "replace").strip() or "no output"
        raise KvestigateError(f"nvidia-smi failed with exit code {done.exit_code}: {output}")
    return readings(done.stdout.decode("utf-8", "replace"))


def _check(options: ProbeOptions) -> None:
    if not 0 < options.ghost_threshold <= 1:
        raise UsageError(
            f"--ghost-threshold {options.ghost_threshold:g} is not a share above 0 and up to 1",
            hint="give for example 0.05",
        )
    if options.samples < 1:
        raise UsageError(f"--samples {options.samples}: must be 1 or more")
