"""What an agent may do. Whatever no rule allows is denied. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from kvestigate.cybernet.refusals import ConstraintViolated, NotAllowed
from kvestigate.cybernet.spec import (
    Cyberspace,
    HostConstraintsSpec,
    HostRequirements,
    WorkspaceConstraintsSpec,
)
from kvestigate.kube.requests import CPU, MEMORY
from kvestigate.operation import Effect
from kvestigate.render.human import cores, size
from kvestigate.snapshot.capacity import NodeCapacity
from kvestigate.snapshot.gpus import gpus_only
from kvestigate.workspace.spec import DEFAULT_ROOT, WorkspaceSpec

DANGEROUS_OPERATIONS = frozenset(
    {
        "app.*",
        "debug.*",
        "delete",
        "deploy",
        "evict",
        "exec",
        "fanout.*",
        "fleet.*",
        "jobs.*",
        "node.*",
        "optimize.*",
        "plane.*",
        "scale",
        "volumes.*",
        "workspace.apply",
        "workspace.cordon",
        "workspace.uncordon",
    }
)
"""The operator's alone, whatever a configuration says: they reach every workload or host, hand
out what the gateway itself may see, or act in the name of anybody."""

_AGENTS_WRITES = "workspace.*"
"""The only operations that change something and that an agent may be given."""


def is_dangerous(name: str, effect: Effect) -> bool:
    """Whether no agent may have it. A new operation that writes is, until it is said otherwise."""
    if any(fnmatchcase(name, pattern) for pattern in DANGEROUS_OPERATIONS):
        return True
    return effect is not Effect.READ and not fnmatchcase(name, _AGENTS_WRITES)


def check_operation(name: str, effects: Mapping[str, Effect]) -> None:
    """NotAllowed unless it is one of `effects`, which are those that the cyberspace allows.

    What does not exist is answered like what is not allowed.
    """
    effect = effects.get(name)
    if effect is None:
        raise NotAllowed(
            f"the operation {name!r} is not allowed here",
            "operations.allow",
            hint="GET /info lists those that are",
        )
    if is_dangerous(name, effect):
        raise NotAllowed(f"the operation {name!r} is the operator's alone", "DANGEROUS_OPERATIONS")


def check_node(hosts: HostConstraintsSpec, node: str) -> None:
    """ConstraintViolated unless agents may use the node."""
    if hosts.allow_names is not None and node not in hosts.allow_names:
        raise ConstraintViolated(
            f"node {node!r} is not one that agents may use",
            "constraints.hosts.allow_names",
            hint=f"there are: {', '.join(hosts.allow_names) or 'none'}",
        )


def check_capacity(required: HostRequirements, node: str, found: NodeCapacity | None) -> None:
    """ConstraintViolated unless as much is free on the node as a new workspace requires."""
    rule = "constraints.hosts.require"
    if found is None:
        raise ConstraintViolated(f"there is no node {node!r}", rule)
    if not found.ready:
        raise ConstraintViolated(f"node {node!r} is not ready", rule, hint="choose another node")
    free_gpus = sum(gpus_only(found.allocatable).values()) - sum(
        gpus_only(found.requested).values()
    )
    free_cores, free_memory = found.free(CPU) / 1000, found.free(MEMORY)
    for name, free, wanted, shown in (
        ("min_free_gpu", free_gpus, required.min_free_gpu, str),
        ("min_free_cpu_cores", free_cores, required.min_free_cpu_cores, cores),
        ("min_free_memory", free_memory, required.min_free_memory, size),
    ):
        if free < wanted:
            raise ConstraintViolated(
                f"node {node!r}: {name}: {shown(free)} is free, {shown(wanted)} is required",
                f"{rule}.{name}",
                hint="choose another node: `report.run` with name=nodes shows what is free",
            )


def check_place(space: Cyberspace, spec: WorkspaceSpec) -> None:
    """ConstraintViolated unless a workspace of the cyberspace may be there, and be called so."""
    check_node(space.hosts, spec.node)
    _check_name(space.workspace, "workspace.name", spec.name)
    if spec.root != DEFAULT_ROOT:
        raise ConstraintViolated(
            f"workspace.root: {spec.root!r} is the operator's to choose",
            "workspace.root",
            hint="leave the field out",
        )


def check_app(space: Cyberspace, name: str, gpus: int) -> None:
    """ConstraintViolated unless an App in pods, each with so many GPUs, may be in the cyberspace.

    That pods stay on its nodes is for the scheduler to see to, which is told so.
    """
    if space.hosts.allow_names == ():
        check_node(space.hosts, "")
    _check_name(space.workspace, "metadata.name", name)
    _check_gpus(space.workspace, "resources.gpu", gpus)


def _check_name(rules: WorkspaceConstraintsSpec, field: str, name: str) -> None:
    if rules.name_pattern and not re.fullmatch(rules.name_pattern, name):
        raise ConstraintViolated(
            f"{field}: {name!r} does not match {rules.name_pattern}",
            "constraints.workspace.name_pattern",
        )


def _check_gpus(rules: WorkspaceConstraintsSpec, field: str, gpus: int) -> None:
    if rules.max_gpu is not None and gpus > rules.max_gpu:
        raise ConstraintViolated(
            f"{field}: {gpus} GPUs are more than {rules.max_gpu}",
            "constraints.workspace.gpu.max_per_workspace",
        )


def check_workspace(space: Cyberspace, spec: WorkspaceSpec) -> None:
    """ConstraintViolated unless an agent may name such a workspace at all."""
    check_place(space, spec)
    if spec.sources:
        raise ConstraintViolated(
            "workspace.sources: would be read from the gateway's own disk",
            "workspace.sources",
            hint="send files with workspace.sync",
        )


def check_new_workspace(rules: WorkspaceConstraintsSpec, spec: WorkspaceSpec) -> None:
    """ConstraintViolated unless an agent may create it."""
    path = "constraints.workspace"
    mode = spec.storage.mode.value
    if mode not in rules.allowed_modes:
        raise ConstraintViolated(
            f"workspace.storage.mode: {mode!r} is not allowed",
            f"{path}.storage.allowed_modes",
            hint=f"there are: {', '.join(rules.allowed_modes) or 'none'}",
        )
    if rules.max_tmpfs_size is not None and spec.storage.tmpfs_bytes > rules.max_tmpfs_size:
        raise ConstraintViolated(
            f"workspace.storage.tmpfs_size: {spec.storage.tmpfs_size} is more than "
            f"{size(rules.max_tmpfs_size)}",
            f"{path}.storage.max_tmpfs_size",
        )
    _check_gpus(rules, "workspace.gpu", gpus_wanted(spec))
    if rules.cordon_node_forbidden and spec.gpu.cordon_node:
        raise ConstraintViolated(
            "workspace.gpu.cordon_node: agents may not close nodes for pods",
            f"{path}.gpu.cordon_node_forbidden",
            hint="write cordon_node: false",
        )


def gpus_wanted(spec: WorkspaceSpec) -> int:
    """How many GPUs a workspace will hold."""
    return spec.gpu.reserve or len(spec.gpu.indices)


def check_owner(owner: str | None, caller: str, name: str) -> None:
    """NotAllowed unless the workspace is the caller's own; None: there is no such workspace."""
    if owner is not None and owner != caller:
        raise NotAllowed(f"workspace {name!r} is somebody else's", "ownership")


def check_gpus(asked: Collection[int], own: Collection[int]) -> None:
    """ConstraintViolated unless a run asks for GPUs of its own workspace only."""
    if foreign := sorted(set(asked) - set(own)):
        shown = ", ".join(map(str, foreign))
        raise ConstraintViolated(
            f"gpus: {shown}: not of this workspace",
            "ownership",
            hint=f"it has: {', '.join(map(str, sorted(own))) or 'none'}",
        )
