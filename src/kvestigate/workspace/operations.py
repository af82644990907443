"""The operations on workspaces, as the catalog lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from kvestigate.nodeops import operations as nodeops
from kvestigate.operation import (
    Consequence,
    Effect,
    Operation,
    Reach,
    Touched,
    Use,
    WorkspaceUse,
)
from kvestigate.workspace import applying, fetch, lifecycle, rendering, runs, sync, texts
from kvestigate.workspace.gpus import anonymous
from kvestigate.workspace.options import (
    ApplyOptions,
    CreateOptions,
    DestroyOptions,
    DiffOptions,
    ExportOptions,
    FetchOptions,
    GpusOptions,
    KillOptions,
    LocalSyncOptions,
    LogsOptions,
    PsOptions,
    RunOptions,
    StatusOptions,
    SyncOptions,
)
from kvestigate.workspace.plan import Plan
from kvestigate.workspace.spec import WorkspaceSpec

_HOSTS = Consequence.MODIFIES_HOSTS
_MEANT = f"--apply {_HOSTS.flag}"


class _Named(Protocol):
    @property
    def workspace(self) -> WorkspaceSpec: ...


class _Planned(Protocol):
    @property
    def plan(self) -> Plan | None: ...


def workspace_use(spec: WorkspaceSpec, use: Use) -> WorkspaceUse:
    """What a policy has to know of a workspace."""
    return WorkspaceUse(
        node=spec.node,
        name=spec.name,
        use=use,
        storage_mode=spec.storage.mode.value,
        tmpfs_bytes=spec.storage.tmpfs_bytes,
        gpus=spec.gpu.reserve or len(spec.gpu.indices),
        cordons=spec.gpu.cordon_node,
        root=spec.root,
    )


def _with(use: Use) -> Callable[[_Named], Touched]:
    def touches(options: _Named) -> Touched:
        spec = options.workspace
        sources = tuple(source.local for source in spec.sources)
        return Touched((spec.node,), workspaces=(workspace_use(spec, use),), files=sources)

    return touches


_inside = _with(Use.INSIDE)


def _of_nodes(options: StatusOptions | GpusOptions) -> Touched:
    return Touched(options.nodes, every_node=not options.nodes)


def _of_run(options: RunOptions) -> Touched:
    return replace(_inside(options), gpus=options.gpus)


def _of_sync(options: SyncOptions) -> Touched:
    local = (options.local,) if isinstance(options, LocalSyncOptions) else ()
    return replace(_inside(options), files=local)


def _own(status: lifecycle.Status, owner: str) -> lifecycle.Status:
    """Agents see their own workspaces, and neither what others run nor with which words."""
    own = tuple(view for view in status.workspaces if view.owner == owner)
    return replace(status, workspaces=own, lost={})


def _without_holders(status: lifecycle.GpuStatus, owner: str) -> lifecycle.GpuStatus:
    """Agents see which GPUs are free, and not who has the others."""
    nodes = tuple(replace(node, gpus=anonymous(node.gpus)) for node in status.nodes)
    return replace(status, nodes=nodes)


def _in_short(result: Any, owner: str) -> Any:
    """Steps in a line each: agents cannot run the scripts of hosts, and those are long."""
    if result.plan is None:
        return result
    steps = tuple(replace(step, script="", undo="") for step in result.plan.steps)
    return replace(result, plan=replace(result.plan, steps=steps))


def _has_steps(result: _Planned) -> bool:
    return result.plan is not None and bool(result.plan.steps)


STATUS: Operation[StatusOptions, lifecycle.Status] = Operation(
    name="workspace.status",
    summary="List the workspaces of all nodes, or of some.",
    input=StatusOptions,
    output=lifecycle.Status,
    effect=Effect.READ,
    touches=_of_nodes,
    confined=lambda options, nodes: replace(options, nodes=nodes),
    for_agents=True,
    handler=lifecycle.status,
    reaches=Reach.HOSTS,
    doing=lambda options: "looking at the hosts",
    examples=("kvestigate workspace status", "kvestigate workspace status --node node-02 -o wide"),
    render=rendering.status_blocks,
    shown=_own,
)
GPUS: Operation[GpusOptions, lifecycle.GpuStatus] = Operation(
    name="workspace.gpus",
    summary="Show which GPUs are free, and who has the others.",
    description=(
        "What nvidia-smi says on the hosts is compared with what Kubernetes and workspaces have "
        "allocated: a GPU is free if no pod, no process and no workspace has it."
    ),
    input=GpusOptions,
    output=lifecycle.GpuStatus,
    effect=Effect.READ,
    touches=_of_nodes,
    confined=lambda options, nodes: replace(options, nodes=nodes),
    for_agents=True,
    handler=lifecycle.gpus,
    reaches=Reach.HOSTS,
    doing=lambda options: "looking at the hosts",
    examples=("kvestigate workspace gpus", "kvestigate workspace gpus --node node-02"),
    render=rendering.gpus_blocks,
    shown=_without_holders,
)
DIFF: Operation[DiffOptions, applying.Difference] = Operation(
    name="workspace.diff",
    summary="Show how a workspace differs from its description, and what `apply` would do.",
    input=DiffOptions,
    output=applying.Difference,
    effect=Effect.READ,
    touches=_with(Use.COMPARE),
    for_agents=True,
    handler=applying.diff,
    render=rendering.difference_blocks,
    shown=_in_short,
)
APPLY: Operation[ApplyOptions, applying.Application] = Operation(
    name="workspace.apply",
    summary="Make the workspace that a file describes, and bring all its sources into it.",
    input=ApplyOptions,
    output=applying.Application,
    effect=Effect.WRITE,
    consequence=_HOSTS,
    touches=_with(Use.CREATE),
    handler=applying.apply,
    render=rendering.application_blocks,
    pending=lambda done: done.changes_anything,
)
EXPORT: Operation[ExportOptions, lifecycle.Export] = Operation(
    name="workspace.export",
    summary="Write the workspace.yaml of an existing workspace.",
    input=ExportOptions,
    output=lifecycle.Export,
    effect=Effect.READ,
    touches=lambda options: Touched(nodes=(options.node,)),
    handler=lifecycle.export,
)
PS: Operation[PsOptions, runs.RunList] = Operation(
    name="workspace.ps",
    summary="List the runs of a workspace, and how they ended.",
    description="The exit code is `?` if the node went down before the run had ended.",
    input=PsOptions,
    output=runs.RunList,
    effect=Effect.READ,
    touches=_inside,
    for_agents=True,
    handler=runs.ps,
    reaches=Reach.HOSTS,
    examples=("kvestigate workspace ps --config workspace.yaml",),
    render=rendering.runs_blocks,
)
LOGS: Operation[LogsOptions, runs.Log] = Operation(
    name="workspace.logs",
    summary="Show the log of a run.",
    input=LogsOptions,
    output=runs.Log,
    effect=Effect.READ,
    touches=_inside,
    for_agents=True,
    handler=runs.logs,
    render=rendering.log_blocks,
)
FETCH: Operation[FetchOptions, fetch.Fetched] = Operation(
    name="workspace.fetch",
    summary="Copy a file or directory out of a workspace.",
    input=FetchOptions,
    output=fetch.Fetched,
    effect=Effect.READ,
    touches=_inside,
    for_agents=True,
    handler=fetch.fetch,
)
CREATE: Operation[CreateOptions, lifecycle.Creation] = Operation(
    name="workspace.create",
    summary="Make a workspace on a node's host.",
    description=(
        "Its directories are made, memory is mounted where the storage mode says so, GPUs are "
        "reserved and the node is cordoned. If a step fails, the steps before it are undone. A "
        "workspace that exists is left as it is."
    ),
    input=CreateOptions,
    output=lifecycle.Creation,
    effect=Effect.WRITE,
    consequence=_HOSTS,
    touches=_with(Use.CREATE),
    for_agents=True,
    idempotent=True,
    handler=lifecycle.create,
    reaches=Reach.HOSTS,
    doing=lambda options: f"creating workspace {options.workspace.name}",
    examples=(
        "kvestigate workspace create --config workspace.yaml",
        f"kvestigate workspace create --config workspace.yaml {_MEANT}",
    ),
    render=rendering.creation_blocks,
    pending=_has_steps,
    shown=_in_short,
)
SYNC: Operation[SyncOptions, sync.Synced] = Operation(
    name="workspace.sync",
    summary="Bring files into a workspace.",
    input=SyncOptions,
    output=sync.Synced,
    effect=Effect.WRITE,
    consequence=_HOSTS,
    touches=_of_sync,
    for_agents=True,
    idempotent=True,
    handler=sync.sync,
    render=rendering.synced_blocks,
    pending=lambda done: bool(done.sent or done.removed),
)
PUT_TEXT: Operation[texts.PutTextOptions, texts.Written] = Operation(
    name="workspace.put_text",
    summary="Write a small text file of a workspace.",
    description=(
        "The file is written whole or not at all, whether or not it was there; its directory is "
        "made. A run starts in `code`, so `code/train.py` is `train.py` to its command."
    ),
    input=texts.PutTextOptions,
    output=texts.Written,
    effect=Effect.WRITE,
    consequence=_HOSTS,
    touches=_inside,
    for_agents=True,
    idempotent=True,
    handler=texts.put_text,
    examples=(
        "kvestigate workspace put-text code/hi.sh --config workspace.yaml --text 'echo hi' "
        f"{_MEANT}",
    ),
)
GET_TEXT: Operation[texts.GetTextOptions, texts.Text] = Operation(
    name="workspace.get_text",
    summary="Read a small text file of a workspace, or a part of a large one.",
    input=texts.GetTextOptions,
    output=texts.Text,
    effect=Effect.READ,
    touches=_inside,
    for_agents=True,
    handler=texts.get_text,
    examples=("kvestigate workspace get-text code/hi.sh --config workspace.yaml",),
)
LIST_FILES: Operation[texts.ListFilesOptions, texts.FileList] = Operation(
    name="workspace.list_files",
    summary="List the files in a directory of a workspace.",
    input=texts.ListFilesOptions,
    output=texts.FileList,
    effect=Effect.READ,
    touches=_inside,
    for_agents=True,
    handler=texts.list_files,
    examples=("kvestigate workspace list-files code --config workspace.yaml",),
)
EDIT: Operation[texts.EditOptions, texts.Written] = Operation(
    name="workspace.edit",
    summary="Replace a text in a small file of a workspace.",
    description=(
        "The old text has to be in the file exactly once, unless `every` is set. A file that "
        "somebody else changes meanwhile is left as it is."
    ),
    input=texts.EditOptions,
    output=texts.Written,
    effect=Effect.WRITE,
    consequence=_HOSTS,
    touches=_inside,
    for_agents=True,
    handler=texts.edit,
    examples=(
        f"kvestigate workspace edit code/hi.sh --config workspace.yaml --old hi --new ho {_MEANT}",
    ),
)
RUN: Operation[RunOptions, runs.Launch] = Operation(
    name="workspace.run",
    summary="Start a process in a workspace, with GPUs bound by UUID.",
    input=RunOptions,
    output=runs.Launch,
    effect=Effect.WRITE,
    consequence=_HOSTS,
    touches=_of_run,
    for_agents=True,
    handler=runs.run,
    render=rendering.launch_blocks,
    shown=_in_short,
)
KILL: Operation[KillOptions, runs.Killing] = Operation(
    name="workspace.kill",
    summary="Send a signal to a run and all processes of its group.",
    description="--apply may be left out.",
    input=KillOptions,
    output=runs.Killing,
    effect=Effect.DESTROY,
    consequence=_HOSTS,
    needs_apply=False,
    touches=_inside,
    for_agents=True,
    handler=runs.kill,
    reaches=Reach.HOSTS,
    examples=(
        "kvestigate workspace kill train-001 --config workspace.yaml "
        "--signal TERM --i-understand-this-modifies-hosts",
    ),
    render=rendering.killing_blocks,
    pending=_has_steps,
    shown=_in_short,
)
DESTROY: Operation[DestroyOptions, lifecycle.Destruction] = Operation(
    name="workspace.destroy",
    summary="Stop what runs in a workspace, and remove it.",
    description=(
        "In all-tmpfs mode that is one umount and one rmdir, however much is in it. Only a "
        "directory with the marker of a workspace is removed. The node is uncordoned if it was "
        "cordoned for this workspace and no other one needs that. If there is no such workspace, "
        "nothing is done."
    ),
    input=DestroyOptions,
    output=lifecycle.Destruction,
    effect=Effect.DESTROY,
    consequence=_HOSTS,
    touches=_with(Use.REMOVE),
    for_agents=True,
    idempotent=True,
    handler=lifecycle.destroy,
    reaches=Reach.HOSTS,
    doing=lambda options: f"removing workspace {options.workspace.name}",
    examples=(
        "kvestigate workspace destroy --config workspace.yaml",
        f"kvestigate workspace destroy --config workspace.yaml {_MEANT}",
    ),
    render=rendering.destruction_blocks,
    pending=_has_steps,
    shown=_in_short,
)
CORDON = replace(
    nodeops.CORDON,
    name="workspace.cordon",
    summary="Keep pods from taking the GPUs that workspaces on a node use.",
    description="The same as `kvestigate node cordon`.",
    examples=("kvestigate workspace cordon node-02 --i-understand-this-modifies-cluster",),
)
UNCORDON = replace(
    nodeops.UNCORDON,
    name="workspace.uncordon",
    summary="Let pods be scheduled to a node again.",
    description="The same as `kvestigate node uncordon`.",
    examples=("kvestigate workspace uncordon node-02 --i-understand-this-modifies-cluster",),
)
