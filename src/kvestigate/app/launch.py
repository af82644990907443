"""From an App to workspaces on hosts and what is started in them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kvestigate.app.check import file_name
from kvestigate.app.digest import digest
from kvestigate.app.spec import AppSpec, RestartPolicy
from kvestigate.errors import InputError
from kvestigate.workspace.limits import Limits
from kvestigate.workspace.names import DEFAULT_ROOT, check_variable
from kvestigate.workspace.spec import GpuSpec, StorageSpec, WorkspaceSpec

CONFIG_VARIABLE = "APP_CONFIG_DIR"
CONFIG_SUBDIR = "config"

_PAUSE = 1
"""Seconds before a program that ended is started again."""
_LOOPS = {
    RestartPolicy.ALWAYS: f'while :; do "$@" || :; sleep {_PAUSE}; done',
    RestartPolicy.ON_FAILURE: f'until "$@"; do sleep {_PAUSE}; done',
}


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What is started in a workspace; its GPUs are those that the workspace was given."""

    tag: str
    """Ends with a digest of the rest: what runs under it is this and nothing else."""
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents of config files by name."""
    limits: Limits = field(default_factory=Limits)


class CompiledWorkspace(NamedTuple):
    workspace: WorkspaceSpec
    launch: LaunchPlan


@dataclass(frozen=True, slots=True)
class DistributedPlan:
    shards: tuple[CompiledWorkspace, ...]
    """By rank."""


def compile_to_workspace(spec: AppSpec) -> CompiledWorkspace:
    """The one workspace of an App."""
    if spec.distributed is not None:
        raise InputError(
            f"distributed.shards: {spec.distributed.shards} are more than one workspace",
            hint="compile_to_distributed has one for each",
        )
    return _compiled(spec, spec.metadata.name, _nodes(spec)[0], {})


def compile_to_distributed(
    spec: AppSpec, addresses: Mapping[str, str] | None = None
) -> DistributedPlan:
    """A workspace for each shard; an App that is not distributed is one shard.

    `addresses` are where the nodes find each other: on many hosts their names mean nothing.
    """
    count = spec.distributed.shards if spec.distributed is not None else 1
    nodes = _nodes(spec)
    hosts = [nodes[rank % len(nodes)] for rank in range(count)]
    peers = [(addresses or {}).get(host, host) for host in hosts]
    together = {
        "DIST_WORLD_SIZE": str(count),
        "DIST_PEERS": ",".join(peers),
        "DIST_COORDINATOR": peers[0],
    }
    return DistributedPlan(
        tuple(
            _compiled(
                spec, f"{spec.metadata.name}-{rank}", host, {"DIST_RANK": str(rank), **together}
            )
            for rank, host in enumerate(hosts)
        )
    )


def compile_to_hosts(spec: AppSpec, addresses: Mapping[str, str] | None = None) -> DistributedPlan:
    """Whichever of the two an App needs."""
    if spec.distributed is not None:
        return compile_to_distributed(spec, addresses)
    return DistributedPlan((compile_to_workspace(spec),))


def _nodes(spec: AppSpec) -> tuple[str, ...]:
    if not spec.nodes:
        raise InputError(
            "workspace.node: is needed to run on a host",
            hint="name a node (kvestigate report run nodes), or write target: k8s",
        )
    return spec.nodes


def _compiled(
    spec: AppSpec, name: str, node: str, more_env: Mapping[str, str]
) -> CompiledWorkspace:
    workspace = WorkspaceSpec(
        name=name,
        node=node,
        root=spec.workspace.root or DEFAULT_ROOT,
        storage=_storage(spec),
        gpu=GpuSpec(
            reserve=0 if spec.workspace.gpu_indices else spec.resources.gpu,
            indices=spec.workspace.gpu_indices,
            cordon_node=spec.workspace.cordon_node,
        ),
        sources=spec.workspace.sources,
    )
    return CompiledWorkspace(workspace, _launch(spec, workspace.path, more_env))


def _storage(spec: AppSpec) -> StorageSpec:
    wanted, storage = spec.workspace.storage, StorageSpec()
    if wanted.mode is not None:
        storage = replace(storage, mode=wanted.mode)
    if wanted.tmpfs_size:
        storage = replace(storage, tmpfs_size=wanted.tmpfs_size)
    if wanted.hybrid_tmpfs_path:
        storage = replace(storage, hybrid_tmpfs_path=wanted.hybrid_tmpfs_path)
    return storage


def _launch(spec: AppSpec, path: str, more_env: Mapping[str, str]) -> LaunchPlan:
    if not spec.command:
        raise InputError(
            "command: is needed to run on a host, where there is no image to have one",
            hint="command: [python, -m, train]",
        )
    for name in spec.env:
        _check_variable(name)
    files = {file_name(file): file.content or "" for file in spec.shared_config_files}
    own = {CONFIG_VARIABLE: f"{path}/{CONFIG_SUBDIR}"} if files else {}
    command = spec.command
    if loop := _LOOPS.get(spec.restarts):
        command = ("sh", "-c", loop, spec.metadata.name, *command)
    env = {**own, **spec.env, **more_env}
    limits = Limits(spec.resources.cpu, spec.resources.memory)
    all_of_it: dict[str, object] = {"command": list(command), "env": env, "files": files}
    if limits:
        all_of_it["limits"] = [limits.cpu, limits.memory]
    ending = digest(all_of_it)[:8]
    return LaunchPlan(f"{spec.metadata.name}-{ending}", command, env, files, limits)


def _check_variable(name: str) -> None:
    try:
        check_variable(name)
    except InputError as error:
        message = error.message.removeprefix(f"{error.where}: ")
        raise InputError(message, where=f"env.{name}", hint=error.hint) from None
