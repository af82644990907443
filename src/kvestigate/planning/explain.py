"""Why a demand does not fit, and what would make it fit, in sentences. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kvestigate.kube.requests import CPU, MEMORY, PODS, Amounts
from kvestigate.planning.constraints import CONSTRAINTS
from kvestigate.planning.model import GPU, Demand, Domains
from kvestigate.planning.nodes import Candidate, slots_in
from kvestigate.planning.solve import most
from kvestigate.render.human import cores, size


def amount(resource: str, count: int) -> str:
    """`7 GPUs`, `3.5 CPUs`, `64.0 GiB of memory`, `2 example.com/foo`"""
    if resource == CPU:
        return f"{cores(count / 1000)} {'CPU' if count == 1000 else 'CPUs'}"
    if resource == MEMORY:
        return f"{size(count)} of memory"
    if resource == GPU:
        return f"{count} {'GPU' if count == 1 else 'GPUs'}"
    if resource == PODS:
        return f"{count} {'pod slot' if count == 1 else 'pod slots'}"
    return f"{count} {resource}"


def problem(
    demand: Demand, found: Sequence[Candidate], fitting: int, domains: Domains | None
) -> str:
    """One sentence; for a demand of which only `fitting` replicas fit."""
    usable = [each for each in found if each.bar is None]
    if not found:
        return "the cluster has no nodes"
    if not usable:
        counts = Counter(each.bar.name for each in found if each.bar is not None)
        said = ", ".join(f"{bar} ({count})" for bar, count in counts.items())
        return f"none of the {len(found)} nodes may be used: {said}"
    if not any(each.slots for each in usable):
        return _too_big(demand.need, usable)
    if not fitting and domains is not None:
        return f"the rule about {domains.key} admits no node that has room"
    where = "on one node" if demand.single_node else f"on {len(usable)} usable nodes"
    return f"only {fitting} of {demand.replicas} replicas fit {where}{_limits(demand, usable)}"


def ways_out(
    demand: Demand, found: Sequence[Candidate], fitting: int, domains: Domains | None
) -> tuple[str, ...]:
    """What would let more replicas in, each on its own, the most effective first."""
    gains: list[tuple[int, str]] = []
    rooms = [each.room for each in found if each.bar is None]
    for constraint in CONSTRAINTS:
        if constraint.way_out:
            more = [*rooms, *(each.room for each in found if each.bar is constraint)]
            fit = most(more, demand.replicas, domains, single=demand.single_node)
            gains.append((fit - fitting, constraint.way_out))
    if demand.single_node:
        gains.append((most(rooms, demand.replicas) - fitting, "the replicas need not share a node"))
    if demand.one_per_node:
        together = [
            replace(each.room, slots=slots_in(each.free, demand.need))
            for each in found
            if each.bar is None
        ]
        fit = most(together, demand.replicas, domains, single=demand.single_node)
        gains.append((fit - fitting, "a node could take more than one"))
    if domains is not None:
        gains.append((most(rooms, demand.replicas) - fitting, f"{domains.key} had no rule"))
    gains.sort(key=lambda gain: -gain[0])
    return tuple(f"{gain} more would fit if {words}" for gain, words in gains if gain > 0)


def _too_big(need: Amounts, usable: Sequence[Candidate]) -> str:
    """One replica is too big for every node."""
    short = []
    for resource, wanted in need.items():
        best = max(usable, key=lambda each: each.free.get(resource, 0))
        largest = max(best.free.get(resource, 0), 0)
        if largest < wanted:
            block = f"the largest free block is {largest_words(resource, largest)} on {best.name}"
            offered = max(each.offered.get(resource, 0) for each in usable)
            if largest < offered < wanted:
                block += f", and even an empty node has only {largest_words(resource, offered)}"
            none = f"and the {len(usable)} usable nodes have none free"
            short.append(f"no node has {amount(resource, wanted)}: {block if largest else none}")
    if short:
        return "; ".join(short)
    wanted_all = " and ".join(amount(name, count) for name, count in need.items() if count)
    return f"no node has {wanted_all} free together, though each is there on some node"


def largest_words(resource: str, largest: int) -> str:
    """The amount, without the unit where it is clear: `7` of GPUs."""
    return str(largest) if resource == GPU else amount(resource, largest)


def _limits(demand: Demand, usable: Sequence[Candidate]) -> str:
    """Of what the nodes run out first."""
    counts: Counter[str] = Counter()
    for each in usable:
        if demand.one_per_node and each.slots:
            continue
        counts[
            min(
                (name for name, wanted in demand.need.items() if wanted),
                key=lambda name: each.free.get(name, 0) // demand.need[name],
            )
        ] += 1
    names = {CPU: "CPU", MEMORY: "memory", GPU: "GPUs", PODS: "pod slots"}
    said = ", ".join(f"{names.get(name, name)} on {count}" for name, count in counts.most_common())
    return f"; what runs out first: {said}" if said else ""
