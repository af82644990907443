"""Sentences on why a demand does not fit, and what would help. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kvestigate.kube.requests import CPU, MEMORY, PODS, Amounts
from kvestigate.planning.constraints import CONSTRAINTS
from kvestigate.planning.model import GPU, Demand, Domains
from kvestigate.planning.nodes import Candidate, slots_in
from kvestigate.planning.solve import most
from kvestigate.render.human import cores, counted, size


def amount(resource: str, count: int, free: str = "") -> str:
    """`7 GPUs`, `3.5 CPUs`, `64.0 GiB of memory`, `2 example.com/foo`; `7 free GPUs`."""
    if resource == CPU:
        return f"{cores(count / 1000)} {free}{'CPU' if count == 1000 else 'CPUs'}"
    if resource == MEMORY:
        return f"{size(count)} of {free}memory"
    if resource == GPU:
        return counted(count, f"{free}GPU")
    if resource == PODS:
        return counted(count, f"{free}pod slot")
    return f"{count} {free}{resource}"


def problem(
    demand: Demand, nodes: Sequence[Candidate], fitting: int, domains: Domains | None
) -> str:
    """Why only `fitting` replicas of a demand fit."""
    usable = [node for node in nodes if node.bar is None]
    if not nodes:
        return "The cluster has no nodes."
    if not usable:
        counts = Counter(node.bar.name for node in nodes if node.bar is not None)
        reasons = ", ".join(f"{reason} ({count})" for reason, count in counts.items())
        return f"None of the {len(nodes)} nodes can be used: {reasons}."
    if not any(node.slots for node in usable):
        return _too_big(demand.need, usable)
    if not fitting and domains is not None:
        return f"The placement rule for {domains.key} excludes every node with enough free."
    where = "on one node" if demand.single_node else f"on {counted(len(usable), 'usable node')}"
    return f"Only {fitting} of {demand.replicas} replicas fit {where}.{_limits(demand, usable)}"


def ways_out(
    demand: Demand, nodes: Sequence[Candidate], fitting: int, domains: Domains | None
) -> tuple[str, ...]:
    """Single changes that would let more replicas fit, the most effective first."""
    gains: list[tuple[int, str]] = []
    rooms = [node.room for node in nodes if node.bar is None]
    for constraint in CONSTRAINTS:
        if constraint.way_out:
            more = [*rooms, *(node.room for node in nodes if node.bar is constraint)]
            fit = most(more, demand.replicas, domains, single=demand.single_node)
            gains.append((fit - fitting, constraint.way_out))
    if demand.single_node:
        gain = most(rooms, demand.replicas) - fitting
        gains.append((gain, "the replicas may run on different nodes"))
    if demand.one_per_node:
        together = [
            replace(node.room, slots=slots_in(node.free, demand.need))
            for node in nodes
            if node.bar is None
        ]
        fit = most(together, demand.replicas, domains, single=demand.single_node)
        gains.append((fit - fitting, "a node may run more than one replica"))
    if domains is not None:
        gains.append(
            (most(rooms, demand.replicas) - fitting, f"the rule for {domains.key} is dropped")
        )
    gains.sort(key=lambda gain: -gain[0])
    return tuple(
        f"{counted(gain, 'more replica')} would fit if {change}."
        for gain, change in gains
        if gain > 0
    )


def _too_big(need: Amounts, usable: Sequence[Candidate]) -> str:
    """One replica is too big for every node."""
    short = []
    for resource, wanted in need.items():
        best = max(usable, key=lambda node: node.free.get(resource, 0))
        largest = max(best.free.get(resource, 0), 0)
        if largest >= wanted:
            continue
        short.append(f"No node has {amount(resource, wanted, 'free ')}.")
        if largest:
            short.append(f"The largest free block is {_short(resource, largest)} ({best.name}).")
        elif len(usable) == 1:
            short.append(f"1 node is schedulable; it has {_short(resource, 0)} free.")
        else:
            short.append(f"{len(usable)} nodes are schedulable; they have 0 free.")
        offered = max(node.offered.get(resource, 0) for node in usable)
        if 0 < largest < offered < wanted:
            short.append(f"Even an empty node has only {_short(resource, offered)}.")
    if short:
        return " ".join(short)
    amounts = (amount(name, count) for name, count in need.items() if count and name != PODS)
    return f"No node has {' and '.join(amounts)} free at the same time."


def _short(resource: str, count: int) -> str:
    """The amount without the unit where that is clear from the sentence before: `7`."""
    return str(count) if resource in (GPU, PODS) or not count else amount(resource, count)


def _limits(demand: Demand, usable: Sequence[Candidate]) -> str:
    """The sentence about the resource that runs out first, by node; empty if none does."""
    counts: Counter[str] = Counter()
    for node in usable:
        if demand.one_per_node and node.slots:
            continue
        counts[
            min(
                (name for name, wanted in demand.need.items() if wanted),
                key=lambda name: node.free.get(name, 0) // demand.need[name],
            )
        ] += 1
    names = {CPU: "CPU", MEMORY: "memory", GPU: "GPUs", PODS: "pod slots"}
    limits = ", ".join(
        f"{names.get(name, name)} on {counted(count, 'node')}"
        for name, count in counts.most_common()
    )
    return f" The first resource to run out: {limits}." if limits else ""
