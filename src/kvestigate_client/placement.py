"""Which node gets which shard. Pure: reports in, nodes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

STRATEGIES = ("least-loaded", "most-free-capacity")

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKMGTP]?)(i?)")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


class NoPlace(Exception):
    """Fewer nodes have room for a shard than there are shards."""


@dataclass(frozen=True)
class ShardNeeds:
    """What one shard takes."""

    cpu: float = 0.0
    """Cores."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0


@dataclass(frozen=True)
class NodeState:
    """One node as the reports show it."""

    name: str
    ready: bool
    schedulable: bool
    free_cpu: float
    free_memory: int
    free_gpus: int
    load: float
    """Of CPU and memory together, from 0 to 2: measured if it is, else what pods requested."""
    address: str = ""
    """At which other nodes reach it; its name if nothing else is known."""


def amount_of(value: str | float) -> int:
    """Bytes from `600Gi`, `1.5Ti`, `500M` or a number."""
    found = _AMOUNT.fullmatch(str(value).strip())
    if found is None or (found[3] and not found[2]):
        raise ValueError(f"{value!r} is no amount of memory; write 600Gi")
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** _UNITS[found[2].upper()])


def node_states(nodes: Any, metrics: Any = None, gpus: Any = None) -> list[NodeState]:
    """From what `report.run` says of `nodes` and `metrics`, and `workspace.gpus`; two may be None.

    Pods do not know of the GPUs that workspaces hold: these are what `workspace.gpus` is for.
    """
    usage = {}
    if metrics and metrics["report"]["available"]:
        usage = {each["name"]: each for each in metrics["report"]["nodes"]}
    states = [_state(each, usage.get(each["name"])) for each in nodes["report"]["nodes"]]
    if gpus is None:
        return states
    free = {each["node"]: each["free"] for each in gpus["nodes"]}
    return [replace(it, free_gpus=min(it.free_gpus, free.get(it.name, 0))) for it in states]


def _state(node: Mapping[str, Any], used: Mapping[str, Any] | None) -> NodeState:
    cpu, memory, gpus = node["cpu_millis"], node["memory_bytes"], node["gpus"]
    if used is None:
        load = _share(cpu["requested"], cpu["allocatable"])
        load += _share(memory["requested"], memory["allocatable"])
    else:
        load = _share(used["cpu_millis"], used["cpu_allocatable"])
        load += _share(used["memory_bytes"], used["memory_allocatable"])
    return NodeState(
        name=node["name"],
        ready=node["ready"],
        schedulable=node["schedulable"],
        free_cpu=(cpu["allocatable"] - cpu["requested"]) / 1000,
        free_memory=memory["allocatable"] - memory["requested"],
        free_gpus=gpus["allocatable"] - gpus["requested"],
        load=load,
        address=node.get("address") or node["name"],
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 1.0


def place(
    nodes: Sequence[NodeState],
    shards: int,
    needs: ShardNeeds,
    strategy: str = "least-loaded",
    hosts: Mapping[str, Any] | None = None,
) -> list[NodeState]:
    """All nodes on which a shard fits, best first; NoPlace if there are fewer than shards.

    The first ones are for the shards, the others are to spare: by the time a shard is made, one
    of its node's GPUs may be taken. `hosts` are the constraints that `/info` shows.
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy: {strategy!r} is none; there are: {', '.join(STRATEGIES)}")
    rules = hosts or {}
    reasons = {node.name: _objection(node, needs, rules) for node in nodes}
    fit = [node for node in nodes if not reasons[node.name]]
    if len(fit) < shards:
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)
        room = "1 node" if len(fit) == 1 else f"{len(fit)} nodes"
        needed = "1 is" if shards == 1 else f"{shards} are"
        raise NoPlace(f"a shard fits on {room}, and {needed} needed: {why}")
    keys: Mapping[str, Callable[[NodeState], Any]] = {
        "least-loaded": lambda node: (node.load, -node.free_cpu, node.name),
        "most-free-capacity": lambda node: (-node.free_cpu, -node.free_memory, node.name),
    }
    return sorted(fit, key=keys[strategy])


def _objection(node: NodeState, needs: ShardNeeds, rules: Mapping[str, Any]) -> str:
    """Why a shard cannot go there; empty if it can."""
    allowed = rules.get("allow_names")
    required = rules.get("require") or {}
    if allowed is not None and node.name not in allowed:
        return "not one that agents may use"
    if not node.ready:
        return "not ready"
    if allowed is None and not node.schedulable:
        # Whoever names the nodes may have closed them for pods, to have them for this.
        return "cordoned"
    for what, free, least in (
        ("GPUs", node.free_gpus, max(needs.gpus, required.get("min_free_gpu") or 0)),
        ("cores", node.free_cpu, max(needs.cpu, required.get("min_free_cpu_cores") or 0)),
        ("bytes", node.free_memory, max(needs.memory, required.get("min_free_memory") or 0)),
    ):
        if free < least:
            return f"{free:g} of {least:g} {what} are free"
    return ""
