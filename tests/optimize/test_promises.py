"""What `optimize plan` and `node drain` promise comes true, or they stop before doing harm.

Random clusters, with everything that the scheduler and the eviction API can refuse. What is
promised and what is reached are both counted from the objects of the API server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

import pytest

from kvestigate.nodeops.evict import BLOCKED, GONE, DrainOptions, Evictions
from kvestigate.nodeops.operations import DRAIN
from kvestigate.optimize.apply import ApplyOptions
from kvestigate.optimize.collect import FleetSource
from kvestigate.optimize.consolidation import Tunables
from kvestigate.optimize.operations import APPLY, PLAN, PlanOptions
from tests.bed import Object
from tests.contexts import acting, planning
from tests.optimize.random_clusters import GPU, Living, gpus_by_node, living

LIVE = FleetSource(live=True)
CLUSTERS = 200
TOGETHER = 10


@dataclass
class Tally:
    """What happened in a number of clusters."""

    plans: int = 0
    moves: int = 0
    emptied: int = 0
    drains: int = 0
    refused: int = 0
    evicted: int = 0
    stopped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Promises that were not kept, with the seed."""


async def consolidate(seed: int, cluster: Living, tally: Tally) -> None:
    nodes, pods = await cluster.nodes(), await cluster.pods()
    tunables = Tunables(middle_share(nodes, pods), delete_emptydir_data=bool(seed % 2))
    promised = await PLAN.run(planning(cluster.access), PlanOptions(LIVE, tunables))
    options = ApplyOptions(LIVE, tunables, wave_size=1 + seed % 3, timeout=10)
    done = await APPLY.run(acting(cluster.access), options)
    await cluster.quiet()
    after_nodes, after = await cluster.nodes(), await cluster.pods()
    tally.plans += bool(promised.moves)
    tally.moves += len(promised.moves)
    tally.emptied += len(done.emptied)
    if done.stopped:
        tally.stopped.append(f"{seed}: {done.stopped}")
    elif gpus_by_node(after_nodes, after) != {node.node: node.after for node in promised.nodes}:
        tally.broken.append(f"{seed}: GPUs by node differ from the plan")
    elif done.emptied != tuple(dict.fromkeys(move.donor for move in promised.moves)):
        tally.broken.append(f"{seed}: emptied {done.emptied}, promised {promised.drained}")
    # Whatever happened: nobody waits who did not wait before, and no other node is closed.
    if waiting(after) - waiting(pods):
        tally.broken.append(f"{seed}: more pods wait than before")
    if cordoned(after_nodes) != cordoned(nodes) | {*done.emptied}:
        tally.broken.append(f"{seed}: other nodes are cordoned than was said")


async def drain(seed: int, cluster: Living, tally: Tally) -> None:
    nodes, before = await cluster.nodes(), await cluster.pods()
    random = Random(seed)
    options = DrainOptions(
        node=random.choice(sorted(nodes)),
        force=random.random() < 0.5,
        delete_emptydir_data=random.random() < 0.7,
        timeout=1.5,
    )
    promised = await DRAIN.run(planning(cluster.access), options)
    done = await DRAIN.run(acting(cluster.access), options)
    await cluster.quiet()
    after_nodes, after = await cluster.nodes(), await cluster.pods()
    tally.drains += 1
    if promised.refused:
        tally.refused += 1
        if done.applied or uids(after) != uids(before) or cordoned(after_nodes) != cordoned(nodes):
            tally.broken.append(f"{seed}: a refused drain changed something")
        return
    tally.evicted += done.count(GONE)
    if options.node not in cordoned(after_nodes):
        tally.broken.append(f"{seed}: the node is open")
    tally.broken += [f"{seed}: {words}" for words in broken_drain(promised, done, before, after)]


def broken_drain(
    promised: Evictions, done: Evictions, before: list[Object], after: list[Object]
) -> Iterable[str]:
    there = uids(after)
    names = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in before}
    for kept in promised.skipped:
        if names[kept.namespace, kept.name]["metadata"]["uid"] not in there:
            yield f"{kept.name} was to stay"
    for pod, outcome in zip(promised.pods, done.pods, strict=True):
        gone = names[pod.namespace, pod.name]["metadata"]["uid"] not in there
        if outcome.outcome not in (GONE, BLOCKED) or gone != (outcome.outcome == GONE):
            yield f"{pod.name}: {outcome}"
        if outcome.outcome == BLOCKED and not pod.blocked:
            yield f"{pod.name} was not said to be blocked: {outcome}"
        if " allows none " in pod.blocked and gone:
            yield f"{pod.name} was said to be blocked"
    if not any(outcome.outcome == BLOCKED for outcome in done.pods):
        stuck = [pod for pod in promised.pods if "Pending" in pod.reason]
        crowded = [pod for pod in promised.pods if "not together" in pod.reason]
        more = sum((waiting(after) - waiting(before)).values())
        if more and not stuck and not crowded:
            yield f"{more} pods wait, which nobody said"


def middle_share(nodes: dict[str, Object], pods: list[Object]) -> float:
    """Half of the nodes with GPUs in use are below it."""
    shares = sorted(
        held / int(nodes[name]["status"]["allocatable"][GPU])
        for name, held in gpus_by_node(nodes, pods).items()
        if held
    )
    return min(shares[len(shares) // 2], 1.0) if shares else 0.3


def waiting(pods: list[Object]) -> Counter[str]:
    """Pods without a node, by the label of their workload."""
    return Counter(
        pod["metadata"]["labels"]["app"] for pod in pods if not pod["spec"].get("nodeName")
    )


def cordoned(nodes: dict[str, Object]) -> set[str]:
    return {name for name, node in nodes.items() if node["spec"].get("unschedulable")}


def uids(pods: list[Object]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


async def try_out(seeds: Iterable[int], tally: Tally) -> None:
    async def one(seed: int) -> None:
        async with living(seed) as cluster:
            await consolidate(seed, cluster, tally)
            await drain(seed, cluster, tally)

    await asyncio.gather(*map(one, seeds))


async def test_promises_come_true_in_a_few_clusters() -> None:
    tally = Tally()
    await try_out(range(1000, 1000 + TOGETHER), tally)
    assert tally.broken == []
    assert tally.plans
    assert tally.evicted


@pytest.mark.workflow
@pytest.mark.timeout(600)
async def test_promises_come_true_in_200_clusters() -> None:
    tally = Tally()
    for first in range(0, CLUSTERS, TOGETHER):
        await try_out(range(first, first + TOGETHER), tally)
    print(
        f"\n{CLUSTERS} clusters: {tally.plans} plans with {tally.moves} moves emptied "
        f"{tally.emptied} nodes, {len(tally.stopped)} stopped; {tally.drains} drains, "
        f"{tally.refused} refused, {tally.evicted} pods evicted; "
        f"{len(tally.broken)} promises broken"
    )
    print("\n".join(tally.stopped))
    assert tally.broken == []
    assert len(tally.stopped) <= CLUSTERS // 20
