"""The operations on Apps, as the catalog lists them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kvestigate.app import manage, present
from kvestigate.app.diff import Drift
from kvestigate.app.launch import compile_to_hosts
from kvestigate.app.manage import AppOptions
from kvestigate.app.model import AppOutcome
from kvestigate.app.rendering import as_yaml, documents
from kvestigate.app.spec import AppSpec, Target
from kvestigate.app.status import (
    RecordedStatus,
    read_status,
    recorded_statuses,
    status_on,
    status_path_for,
)
from kvestigate.app.target import pick_target
from kvestigate.errors import NoCluster, NotFound
from kvestigate.operation import (
    Consequence,
    Context,
    Effect,
    Operation,
    Touched,
    Use,
    touches_nothing,
)
from kvestigate.render.blocks import text
from kvestigate.workspace.operations import workspace_use


@dataclass(frozen=True, slots=True)
class AppName:
    """An App that is only read about."""

    app: AppSpec


@dataclass(frozen=True, slots=True)
class ListOptions:
    namespace: str = ""
    """All if empty."""


@dataclass(frozen=True, slots=True)
class Compiled:
    app: AppSpec
    documents: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Apps:
    apps: tuple[RecordedStatus, ...]


def touches(options: AppOptions) -> Touched:
    """The workspaces that the App has on hosts; in pods it has none."""
    spec = options.app
    files = tuple(source.local for source in spec.workspace.sources)
    namespaces = (spec.metadata.namespace,)
    if pick_target(spec).target is not Target.WORKSPACE:
        return Touched(namespaces=namespaces, files=files)
    workspaces = tuple(
        workspace_use(shard.workspace, Use.CREATE) for shard in compile_to_hosts(spec).shards
    )
    return Touched(nodes=spec.nodes, namespaces=namespaces, workspaces=workspaces, files=files)


async def _compile(context: Context, options: AppName) -> Compiled:
    return Compiled(options.app, tuple(documents(options.app)))


async def _status(context: Context, options: AppName) -> RecordedStatus:
    """What the last `up` or `down` came to, on the cluster that is meant or else anywhere."""
    name = (options.app.metadata.namespace, options.app.metadata.name)
    try:
        found = status_on(*name, str(context.access.server))
    except NoCluster as error:
        if type(error) is not NoCluster:  # a cluster was asked for by name, and there is none
            raise
        found = None
    found = found or read_status(status_path_for(*name))
    if found is None:
        raise NotFound(
            f"App {options.app.full_name} was never brought up from here",
            hint="kvestigate app plan SPEC shows what would be done",
        )
    return present.discreet(found)


async def _list(context: Context, options: ListOptions) -> Apps:
    found = map(present.discreet, recorded_statuses())
    return Apps(
        tuple(
            status
            for status in found
            if not options.namespace or status.namespace == options.namespace
        )
    )


def _pending(outcome: AppOutcome) -> bool:
    return outcome.changes_anything and not outcome.failed


RENDER: Operation[AppName, Compiled] = Operation(
    name="app.render",
    summary="Print what an App compiles to.",
    input=AppName,
    output=Compiled,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_compile,
    render=lambda compiled: [text(as_yaml(compiled.app))],
)
PLAN: Operation[AppOptions, AppOutcome] = Operation(
    name="app.plan",
    summary="Show what `up` would do, step by step.",
    input=AppOptions,
    output=AppOutcome,
    effect=Effect.READ,
    touches=touches,
    handler=manage.up,
    render=present.outcome_blocks,
)
UP: Operation[AppOptions, AppOutcome] = Operation(
    name="app.up",
    summary="Bring an App up, or make it what its description says by now.",
    input=AppOptions,
    output=AppOutcome,
    effect=Effect.WRITE,
    consequence=Consequence.MODIFIES_CLUSTER,
    touches=touches,
    handler=manage.up,
    render=present.outcome_blocks,
    pending=_pending,
)
DOWN: Operation[AppOptions, AppOutcome] = Operation(
    name="app.down",
    summary="Take an App down: its objects, or its workspaces with all that is in them.",
    input=AppOptions,
    output=AppOutcome,
    effect=Effect.DESTROY,
    consequence=Consequence.MODIFIES_CLUSTER,
    touches=touches,
    handler=manage.down,
    render=present.outcome_blocks,
    pending=_pending,
)
DIFF: Operation[AppOptions, Drift] = Operation(
    name="app.diff",
    summary="Show whether an App changed since it was applied, and what `up` would do now.",
    input=AppOptions,
    output=Drift,
    effect=Effect.READ,
    touches=touches,
    handler=manage.drift,
    render=present.drift_blocks,
)
STATUS: Operation[AppName, RecordedStatus] = Operation(
    name="app.status",
    summary="Show what the last `up` or `down` of an App came to.",
    input=AppName,
    output=RecordedStatus,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_status,
    render=present.status_blocks,
)
LIST: Operation[ListOptions, Apps] = Operation(
    name="app.list",
    summary="List all Apps that were brought up from this machine.",
    input=ListOptions,
    output=Apps,
    effect=Effect.READ,
    touches=touches_nothing,
    handler=_list,
    render=lambda found: present.list_blocks(found.apps),
)
