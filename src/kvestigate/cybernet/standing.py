"""`cyberspace.info`: what an identity may do here, what it holds, and what is left for it.

Every cyberspace offers this operation: whoever may do anything may know what. It is not in the
catalog, because only a gateway can answer it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from kvestigate.cybernet import quotas as counting
from kvestigate.cybernet.entries import Entries, Entry
from kvestigate.cybernet.policy import check_capacity
from kvestigate.cybernet.quotas import owner_of
from kvestigate.cybernet.refusals import ConstraintViolated
from kvestigate.cybernet.spec import Cyberspace, HostConstraintsSpec, QuotaSpec
from kvestigate.errors import KvestigateError
from kvestigate.kube.requests import CPU, MEMORY
from kvestigate.operation import Context, Effect, Operation, touches_nothing
from kvestigate.snapshot.capacity import NodeCapacity
from kvestigate.snapshot.gpus import gpus_only

NAME = "cyberspace.info"
_MAKES = "workspace.create"
_MOST_NODES = 12

ReadEntries = Callable[[], Awaitable[Entries]]
ReadCapacities = Callable[[], Awaitable[tuple[NodeCapacity, ...]]]


@dataclass(frozen=True, slots=True)
class StandingOptions:
    """There is nothing to say."""


@dataclass(frozen=True, slots=True)
class Allowed:
    operation: str
    summary: str


@dataclass(frozen=True, slots=True)
class Quota:
    name: str
    limit: int
    used: int | None
    """null: not known now."""
    left: int | None


@dataclass(frozen=True, slots=True)
class FreeNode:
    """What pods leave free on a node. Other workspaces may have taken some of it."""

    name: str
    gpus: int
    cpu_cores: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Held:
    name: str
    node: str
    gpus: int
    memory_bytes: int
    stage: str
    """`making`, `held` or `removing`"""


@dataclass(frozen=True, slots=True)
class Standing:
    cyberspace: str
    description: str
    identity: str
    operations: tuple[Allowed, ...]
    rules: Mapping[str, Any]
    """What is allowed of each thing; what is not limited is missing."""
    quotas: tuple[Quota, ...]
    workspaces: tuple[Held, ...]
    """Your own."""
    free_nodes: tuple[FreeNode, ...]
    """Nodes that a workspace may be made on now, those with the most free GPUs and CPUs first."""
    free_nodes_in_all: int | None
    """How many there are; null: not known."""
    unknown: tuple[str, ...]
    """What could not be found out, and why."""


def info_operation(
    space: Cyberspace,
    offered: Mapping[str, Operation[Any, Any]],
    read_entries: ReadEntries,
    read_capacities: ReadCapacities,
) -> Operation[StandingOptions, Standing]:
    """The operation for one gateway."""

    async def handler(context: Context, _: StandingOptions) -> Standing:
        unknown: list[str] = []
        entries: Entries | None = {}
        nodes: tuple[NodeCapacity, ...] | None = ()
        if any(name.startswith("workspace.") for name in offered):
            entries = await _known(read_entries, "what is held", unknown)
        if _MAKES in offered:
            nodes = await _known(read_capacities, "which nodes are free", unknown)
        return standing(space, offered, context.owner, entries, nodes, tuple(unknown))

    return Operation(
        name=NAME,
        summary="Say what you may do here, what is left of your quotas and which nodes are free.",
        description="Call this first. All limits that requests are held against are in the answer.",
        input=StandingOptions,
        output=Standing,
        effect=Effect.READ,
        touches=touches_nothing,
        handler=handler,
        for_agents=True,
    )


async def _known(read: Callable[[], Awaitable[Any]], what: str, unknown: list[str]) -> Any:
    try:
        return await read()
    except KvestigateError as error:
        unknown.append(f"{what}: {error.message}")
        return None


def standing(
    space: Cyberspace,
    offered: Mapping[str, Operation[Any, Any]],
    owner: str,
    entries: Entries | None,
    nodes: tuple[NodeCapacity, ...] | None,
    unknown: tuple[str, ...],
) -> Standing:
    """What an owner may know. Pure."""
    identity = owner.removeprefix(owner_of(space.metadata.name, ""))
    own = [] if entries is None else [it for it in entries.values() if it.owner == owner]
    usable = None if nodes is None else _usable(space.hosts, nodes)
    return Standing(
        space.metadata.name,
        space.metadata.description,
        identity,
        tuple(Allowed(name, operation.summary) for name, operation in offered.items()),
        _rules(space),
        tuple(_quotas(space, entries, own)),
        tuple(
            Held(it.name, it.node, it.holding.gpus, it.memory, it.stage.value)
            for it in sorted(own, key=lambda entry: entry.place)
        ),
        () if usable is None else usable[:_MOST_NODES],
        None if usable is None else len(usable),
        unknown,
    )


def _rules(space: Cyberspace) -> dict[str, Any]:
    rules, hosts, runs = space.workspace, space.hosts, space.runs
    said = {
        "nodes": None if hosts.allow_names is None else list(hosts.allow_names[:_MOST_NODES]),
        "nodes_in_all": None if hosts.allow_names is None else len(hosts.allow_names),
        "free_gpus_of_a_node_at_least": hosts.require.min_free_gpu or None,
        "free_cpu_cores_of_a_node_at_least": hosts.require.min_free_cpu_cores or None,
        "free_memory_bytes_of_a_node_at_least": hosts.require.min_free_memory or None,
        "workspace_name_pattern": rules.name_pattern or None,
        "storage_modes": list(rules.allowed_modes),
        "tmpfs_bytes_at_most": rules.max_tmpfs_size,
        "gpus_of_a_workspace_at_most": rules.max_gpu,
        "nodes_may_be_cordoned": not rules.cordon_node_forbidden,
        "cpu_of_a_run_at_most": runs.cpu or None,
        "memory_of_a_run_at_most": runs.memory or None,
        "processes_of_a_workspace_at_most": runs.processes,
        "seconds_until_an_unused_workspace_is_removed": space.leases.ttl,
    }
    return {name: value for name, value in said.items() if value is not None}


def _quotas(space: Cyberspace, entries: Entries | None, own: Iterable[Entry]) -> Iterable[Quota]:
    used: dict[str, int] = {}
    if entries is not None:
        total = counting.usage([entry.holding for entry in entries.values()])
        used = {
            "max_active_workspaces_per_identity": sum(entry.count for entry in own),
            "max_total_active_workspaces": total.workspaces,
            "max_total_active_gpu": total.gpus,
            "max_total_active_memory": total.memory,
        }
    for name, limit in _limits(space.quotas):
        taken = used.get(name)
        yield Quota(name, limit, taken, None if taken is None else max(limit - taken, 0))


def _limits(quotas: QuotaSpec) -> Iterable[tuple[str, int]]:
    for field in fields(quotas):
        if (limit := getattr(quotas, field.name)) is not None:
            yield field.name, limit


def _usable(hosts: HostConstraintsSpec, nodes: Iterable[NodeCapacity]) -> tuple[FreeNode, ...]:
    found = [
        FreeNode(node.name, _free_gpus(node), node.free(CPU) / 1000, node.free(MEMORY))
        for node in nodes
        if _allows(hosts, node)
    ]
    return tuple(sorted(found, key=lambda node: (-node.gpus, -node.cpu_cores, node.name)))


def _allows(hosts: HostConstraintsSpec, node: NodeCapacity) -> bool:
    if hosts.allow_names is not None and node.name not in hosts.allow_names:
        return False
    try:
        check_capacity(hosts.require, node.name, node)
    except ConstraintViolated:
        return False
    return True


def _free_gpus(node: NodeCapacity) -> int:
    allocatable, requested = gpus_only(node.allocatable), gpus_only(node.requested)
    return sum(allocatable.values()) - sum(requested.values())
