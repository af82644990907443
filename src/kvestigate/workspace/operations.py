"""The operations on workspaces, for the catalog."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kvestigate.node_access.model import NodeAccess
from kvestigate.operation import Effect, Operation
from kvestigate.workspace import fetch, lifecycle, runs, sync
from kvestigate.workspace.options import (
    CreateOptions,
    DestroyOptions,
    DiffOptions,
    FetchOptions,
    GpusOptions,
    KillOptions,
    LogsOptions,
    PsOptions,
    RunOptions,
    StatusOptions,
    SyncOptions,
)

__all__ = [
    "OPERATIONS",
    "CreateOptions",
    "DestroyOptions",
    "DiffOptions",
    "FetchOptions",
    "GpusOptions",
    "KillOptions",
    "LogsOptions",
    "PsOptions",
    "RunOptions",
    "StatusOptions",
    "SyncOptions",
]

STATUS = Operation(
    name="workspace.status",
    summary="Which workspaces there are, on all nodes or on some.",
    input=StatusOptions,
    output=lifecycle.Status,
    effect=Effect.READ,
    handler=lifecycle.status,
)
GPUS = Operation(
    name="workspace.gpus",
    summary="Which GPUs are free, and who has the others.",
    input=GpusOptions,
    output=lifecycle.GpuStatus,
    effect=Effect.READ,
    handler=lifecycle.gpus,
)
DIFF = Operation(
    name="workspace.diff",
    summary="How a workspace differs from what is written down, and what would be done about it.",
    input=DiffOptions,
    output=lifecycle.Difference,
    effect=Effect.READ,
    handler=lifecycle.diff,
)
PS = Operation(
    name="workspace.ps",
    summary="The runs of a workspace, and how they ended.",
    input=PsOptions,
    output=runs.RunList,
    effect=Effect.READ,
    handler=runs.ps,
)
LOGS = Operation(
    name="workspace.logs",
    summary="What a run has said.",
    input=LogsOptions,
    output=runs.Log,
    effect=Effect.READ,
    handler=runs.logs,
)
FETCH = Operation(
    name="workspace.fetch",
    summary="Take a file or directory out of a workspace.",
    input=FetchOptions,
    output=fetch.Fetched,
    effect=Effect.READ,
    handler=fetch.fetch,
)
CREATE = Operation(
    name="workspace.create",
    summary="Make a workspace on a node's host.",
    input=CreateOptions,
    output=lifecycle.Creation,
    effect=Effect.WRITE,
    handler=lifecycle.create,
)
SYNC = Operation(
    name="workspace.sync",
    summary="Bring files into a workspace.",
    input=SyncOptions,
    output=sync.Synced,
    effect=Effect.WRITE,
    handler=sync.sync,
)
RUN = Operation(
    name="workspace.run",
    summary="Start a process in a workspace, with GPUs bound by UUID.",
    input=RunOptions,
    output=runs.Launch,
    effect=Effect.WRITE,
    handler=runs.run,
)
KILL = Operation(
    name="workspace.kill",
    summary="Send a signal to a run.",
    input=KillOptions,
    output=runs.Killing,
    effect=Effect.DESTROY,
    handler=runs.kill,
)
DESTROY = Operation(
    name="workspace.destroy",
    summary="Stop what runs in a workspace, and remove it.",
    input=DestroyOptions,
    output=lifecycle.Destruction,
    effect=Effect.DESTROY,
    handler=lifecycle.destroy,
)

OPERATIONS = (STATUS, GPUS, DIFF, PS, LOGS, FETCH, CREATE, SYNC, RUN, KILL, DESTROY)


def through(operation: Operation, via: NodeAccess) -> Operation:
    """The same, with hosts reached through another DaemonSet; others stay as they are."""
    if operation not in OPERATIONS:
        return operation
    return replace(operation, handler=partial(operation.handler, via=via))
