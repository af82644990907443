"""What an agent may do. Whatever no rule allows is denied. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from kvestigate.cybernet.parameters import Defaults
from kvestigate.cybernet.refusals import ConstraintViolated, NotAllowed
from kvestigate.cybernet.spec import (
    Cyberspace,
    HostConstraintsSpec,
    HostRequirements,
    WorkspaceConstraintsSpec,
)
from kvestigate.kube.patterns import compiled
from kvestigate.kube.requests import CPU, MEMORY
from kvestigate.operation import Operation, Touched, WorkspaceUse
from kvestigate.render.human import cores, size
from kvestigate.snapshot.capacity import NodeCapacity
from kvestigate.snapshot.gpus import gpus_only
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.sizes import mount_size
from kvestigate.workspace.spec import GpuSpec, StorageSpec

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

Declared = Operation[Any, Any]


def is_dangerous(operation: Declared) -> bool:
    """Whether no agent may have it: by its name, or because it does not say `for_agents`."""
    named = any(fnmatchcase(operation.name, pattern) for pattern in DANGEROUS_OPERATIONS)
    return named or not operation.for_agents


def allowed(name: str, operations: Mapping[str, Declared]) -> Declared:
    """The operation of that name; NotAllowed unless the cyberspace allows it.

    What does not exist is answered like what is not allowed.
    """
    operation = operations.get(name)
    if operation is None:
        raise NotAllowed(
            f"the operation {name!r} is not allowed here",
            "operations.allow",
            hint=f"allowed are: {', '.join(operations) or 'none'}",
        )
    if is_dangerous(operation):
        raise NotAllowed(
            f"the operation {name!r} is reserved for operators", "DANGEROUS_OPERATIONS"
        )
    return operation


def agent_defaults(rules: WorkspaceConstraintsSpec) -> Defaults:
    """What agents mean where they leave a field out, if that is not what operators mean.

    What is left out is then allowed: the mode, and as much memory as there may be.
    """
    storage: dict[str, Any] = {}
    usual = StorageSpec()
    if rules.allowed_modes and usual.mode not in rules.allowed_modes:
        storage["mode"] = rules.allowed_modes[0]
    if rules.max_tmpfs_size is not None and usual.tmpfs_bytes > rules.max_tmpfs_size > 0:
        storage["tmpfs_size"] = mount_size(rules.max_tmpfs_size)
    gpu = {"cordon_node": False} if rules.cordon_node_forbidden else {}
    return {StorageSpec: storage, GpuSpec: gpu}


def confined(space: Cyberspace, operation: Declared, input: Any) -> Any:
    """An input that names no node means all that agents may use; ConstraintViolated if none."""
    allowed_nodes = space.hosts.allow_names
    if allowed_nodes is None or not operation.touches(input).every_node:
        return input
    if not allowed_nodes or operation.confined is None:
        check_node(space.hosts, "")
    assert operation.confined is not None
    return operation.confined(input, allowed_nodes)


def check_touched(space: Cyberspace, touched: Touched) -> None:
    """ConstraintViolated unless an agent may name all of it."""
    for node in touched.nodes:
        check_node(space.hosts, node)
    if touched.every_node and space.hosts.allow_names is not None:
        check_node(space.hosts, "")
    for path in touched.files:
        raise ConstraintViolated(
            f"{path!r} is a path on the gateway's own disk",
            "files",
            hint="send files with workspace.sync",
        )
    for use in touched.workspaces:
        check_place(space, use)


def check_node(hosts: HostConstraintsSpec, node: str) -> None:
    """ConstraintViolated unless agents may use the node."""
    if hosts.allow_names is not None and node not in hosts.allow_names:
        raise ConstraintViolated(
            f"node {node!r} is not allowed for agents",
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


def check_place(space: Cyberspace, use: WorkspaceUse) -> None:
    """ConstraintViolated unless a workspace of the cyberspace may be there, and be called so."""
    check_node(space.hosts, use.node)
    _check_name(space.workspace, "workspace.name", use.name)
    if use.root != DEFAULT_ROOT:
        raise ConstraintViolated(
            f"workspace.root: {use.root!r} is chosen by the operator",
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
    if rules.name_pattern and not compiled(f"^(?:{rules.name_pattern})$").matches(name):
        raise ConstraintViolated(
            f"{field}: {name!r} does not match {rules.name_pattern}",
            "constraints.workspace.name_pattern",
            hint="choose a name that matches",
        )


def _check_gpus(rules: WorkspaceConstraintsSpec, field: str, gpus: int) -> None:
    if rules.max_gpu is not None and gpus > rules.max_gpu:
        raise ConstraintViolated(
            f"{field}: {gpus} GPUs are more than {rules.max_gpu}",
            "constraints.workspace.gpu.max_per_workspace",
            hint=f"ask for at most {rules.max_gpu}",
        )


def check_new_workspace(rules: WorkspaceConstraintsSpec, use: WorkspaceUse) -> None:
    """ConstraintViolated unless an agent may create it."""
    path = "constraints.workspace"
    mode = use.storage_mode
    if mode not in rules.allowed_modes:
        raise ConstraintViolated(
            f"workspace.storage.mode: {mode!r} is not allowed",
            f"{path}.storage.allowed_modes",
            hint=f"there are: {', '.join(rules.allowed_modes) or 'none'}",
        )
    if rules.max_tmpfs_size is not None and use.tmpfs_bytes > rules.max_tmpfs_size:
        raise ConstraintViolated(
            f"workspace.storage.tmpfs_size: {size(use.tmpfs_bytes)} is more than "
            f"{size(rules.max_tmpfs_size)}",
            f"{path}.storage.max_tmpfs_size",
            hint=f"write at most {mount_size(rules.max_tmpfs_size)}",
        )
    _check_gpus(rules, "workspace.gpu", use.gpus)
    if rules.cordon_node_forbidden and use.cordons:
        raise ConstraintViolated(
            "workspace.gpu.cordon_node: agents may not cordon nodes",
            f"{path}.gpu.cordon_node_forbidden",
            hint="write cordon_node: false",
        )


def check_owner(owner: str | None, caller: str, name: str) -> None:
    """NotAllowed unless the workspace is the caller's own; None: there is no such workspace."""
    if owner is not None and owner != caller:
        raise NotAllowed(f"workspace {name!r} belongs to another identity", "ownership")


def check_borrowed(rules: WorkspaceConstraintsSpec, gpus: Collection[int]) -> None:
    """ConstraintViolated unless a run may have so many GPUs that its workspace has not reserved."""
    _check_gpus(rules, "gpus", len(gpus))


def check_gpus(asked: Collection[int], own: Collection[int]) -> None:
    """ConstraintViolated unless a run asks for GPUs of its own workspace only."""
    if foreign := sorted(set(asked) - set(own)):
        shown = ", ".join(map(str, foreign))
        raise ConstraintViolated(
            f"gpus: {shown}: not reserved by this workspace",
            "ownership",
            hint=f"it has: {', '.join(map(str, sorted(own))) or 'none'}",
        )
