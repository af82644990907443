"""Rounds on real hosts, in the time that a clock says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kvestigate.client.connect import connect
from kvestigate.errors import UsageError
from kvestigate.kube import builtins
from kvestigate.optimize.activity import Verdict
from kvestigate.optimize.collect import FleetSource
from kvestigate.optimize.probe import ProbeOptions, probe
from tests.hosts_cluster import HostsCluster
from tests.snapshot.objects import node
from tests.virtual_clock import VirtualClock

HOUR = 3600.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostsCluster]:
    running = HostsCluster(tmp_path_factory.mktemp("probed"))
    yield running
    running.close()


async def test_rounds_are_as_far_apart_as_the_clock_says(cluster: HostsCluster) -> None:
    access = cluster.access()
    async with connect(access) as api:  # a node that nobody answers for
        nodes, away = builtins.resource("nodes"), node("node-9", gpu="8")
        await api.create(nodes, {"metadata": {"name": "node-9"}})
        await api.patch(nodes, "node-9", {"status": away["status"]}, subresource="status")
    clock = VirtualClock(1_800_000_000.0)
    options = ProbeOptions(FleetSource(live=True), samples=3, interval=HOUR)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        probing = group.create_task(probe(access, options, clock=clock))
        for _ in range(2):
            await clock.sleeper()
            clock.advance(HOUR)
    found = probing.result()
    assert (found.seconds, found.probed_at.timestamp()) == (2 * HOUR, 1_800_000_000.0)
    by_name = {it.node: it for it in found.nodes}
    for name in ("node-1", "node-2"):
        assert [gpu.utilization for gpu in by_name[name].gpus] == [(0.0, 0.0, 0.0)] * 8
        assert by_name[name].verdict is Verdict.NO_ALLOCATION
    assert by_name["node-9"].verdict is Verdict.NO_SAMPLES
    assert by_name["node-9"].problem == "DaemonSet direct-node-access has no pod on this node"
    assert (found.summary.reporting, found.summary.capacity) == (16, 24)


@pytest.mark.parametrize(
    "options",
    [
        ProbeOptions(FleetSource(live=True), ghost_threshold=0),
        ProbeOptions(FleetSource(live=True), ghost_threshold=1.1),
        ProbeOptions(FleetSource(live=True), samples=0),
    ],
)
async def test_what_means_nothing_is_refused(cluster: HostsCluster, options: ProbeOptions) -> None:
    with pytest.raises(UsageError):
        await probe(cluster.access(), options)
