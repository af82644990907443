"""Making, comparing, finding and removing workspaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.errors import Conflict, KvestigateError, NotFound
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.node_access.reach import Host, Hosts, reach
from kvestigate.nodeops.cordon import Cordoning, set_cordoned
from kvestigate.operation import Context, Isolation
from kvestigate.workspace.cordons import LeftCordon, cordon_reason, left_cordons
from kvestigate.workspace.devices import gpus_of
from kvestigate.workspace.fence import Fencing, possible
from kvestigate.workspace.gpus import Gpu, Use, anonymous, choose
from kvestigate.workspace.host import ask_each, attempt, complaint, lacks, staying
from kvestigate.workspace.marker import GpuId, Marker
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.options import (
    CreateOptions,
    DestroyOptions,
    ExportOptions,
    GpusOptions,
    StatusOptions,
)
from kvestigate.workspace.plan import (
    Change,
    Plan,
    Wish,
    differences,
    nothing_to_remove,
    plan_creation,
    plan_destruction,
)
from kvestigate.workspace.running import Run, RunState
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.steps import TAKEN, Step, reopen
from kvestigate.workspace.survey import Survey, survey

_NODES = builtins.resource("nodes")
_STEP_SECONDS = 1800.0
"""Large trees take their time to remove."""
_TRIES = 10
"""How often GPUs are chosen again when others were quicker."""


class TakenMeanwhile(Conflict):
    """Another workspace got what was chosen for this one."""


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """A workspace that is there."""

    name: str
    node: str
    root: str
    path: str
    storage: str
    """The mode."""
    tmpfs_bytes: int
    """What its tmpfs may take; 0 if none is mounted."""
    memory_limit: int
    """The same, whether or not it is mounted now."""
    gpus: tuple[GpuId, ...]
    cordoned: bool
    """Whether the node is closed because of it."""
    created_at: str
    owner: str
    runs: tuple[Run, ...]
    alive: int
    """How many of them run."""
    fencing: Fencing = Fencing.NONE
    """How far what runs in it is kept from everything else."""


@dataclass(frozen=True, slots=True)
class Status:
    workspaces: tuple[WorkspaceView, ...]
    lost: dict[str, tuple[str, ...]]
    """Node -> workspaces whose memory is gone since the node restarted; `create` makes it anew."""
    unreachable: dict[str, str]
    """Node -> why we could not look."""
    cordons: tuple[LeftCordon, ...] = ()
    """Nodes that stay cordoned although nobody needs it."""


@dataclass(frozen=True, slots=True)
class NodeGpus:
    node: str
    free: int
    gpus: tuple[Gpu, ...]


@dataclass(frozen=True, slots=True)
class GpuStatus:
    nodes: tuple[NodeGpus, ...]
    unreachable: dict[str, str]


@dataclass(frozen=True, slots=True)
class Compared:
    """How a workspace compares to its spec."""

    exists: bool
    changes: tuple[Change, ...]
    plan: Plan | None
    """What `create` would do; None if it would refuse."""


@dataclass(frozen=True, slots=True)
class Creation:
    plan: Plan
    exists: bool
    """Whether it was there before."""
    gpus: tuple[GpuId, ...]
    applied: bool


@dataclass(frozen=True, slots=True)
class Export:
    workspace: WorkspaceSpec


@dataclass(frozen=True, slots=True)
class Destruction:
    plan: Plan
    applied: bool


async def status(context: Context, options: StatusOptions) -> Status:
    async with connect(context.access) as api:
        hosts = await reach(api, context.via)
        chosen, unreachable = _chosen(hosts, options.nodes)
        found = await look(chosen, options.root)
        for_agent = context.rules is not None
        cordons = () if for_agent else await left_cordons(api, chosen, datetime.now(UTC))
        return replace(found, unreachable=unreachable | found.unreachable, cordons=cordons)


async def look(hosts: Mapping[str, Host], root: str = DEFAULT_ROOT) -> Status:
    """What is on these hosts; `unreachable` are those of them that do not answer."""
    seen = await _surveys(hosts, DEFAULT_ROOT, root)
    told = {node: survey for node, survey in seen.items() if isinstance(survey, Survey)}
    return Status(
        tuple(view for survey in told.values() for view in _views(survey)),
        {node: lost for node, survey in told.items() if (lost := _lost(survey))},
        {
            node: failure.message
            for node, failure in seen.items()
            if not isinstance(failure, Survey)
        },
    )


async def gpus(context: Context, options: GpusOptions) -> GpuStatus:
    async with connect(context.access) as api:
        hosts = await reach(api, context.via)
        chosen, unreachable = _chosen(hosts, options.nodes)
        seen = await _surveys(chosen, DEFAULT_ROOT, options.root)
        claims = {
            node: survey.claims for node, survey in seen.items() if isinstance(survey, Survey)
        }
        nodes: list[NodeGpus] = []
        for node, found in (await gpus_of(api, chosen, claims)).items():
            if isinstance(found, KvestigateError):
                unreachable[node] = found.message
            elif found or node in options.nodes:
                free = sum(gpu.use is Use.FREE for gpu in found)
                nodes.append(NodeGpus(node, free, found))
        return GpuStatus(tuple(nodes), unreachable)


async def compare(context: Context, spec: WorkspaceSpec) -> Compared:
    """What is not as the spec says, and what `create` would do about it."""
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(spec.node)
        seen = await survey(host, DEFAULT_ROOT, spec.root)
        closed = await is_cordoned(api, spec.node)
        found = seen.at(spec)
        if found is None or found.marker is None:
            plan = await _plan(context, api, host, spec, seen, cordoned=closed)
            return Compared(False, (), plan)
        marker = existing(context, spec, seen)
        changes = tuple(differences(spec, marker, seen, cordoned=closed))
        if all(change.repairable for change in changes):
            owned = replace(context, owner=marker.owner)
            plan = await _plan(owned, api, host, spec, seen, cordoned=closed)
            return Compared(True, changes, plan)
        return Compared(True, changes, None)


async def create(context: Context, options: CreateOptions) -> Creation:
    """Make a workspace. What was made is removed again if a step fails."""
    spec = options.workspace
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(spec.node)
        closing = context.apply and spec.gpu.cordon_node
        async with _closed(api, host, spec) if closing else _as_it_is(api, spec.node) as closed:
            for left in reversed(range(_TRIES)):
                seen = await survey(host, DEFAULT_ROOT, spec.root)
                plan = await _plan(context, api, host, spec, seen, cordoned=closed)
                try:
                    if context.apply:
                        await carry_out(api, host, plan)
                    break
                except TakenMeanwhile:
                    if not left:
                        raise
            found = seen.at(spec)
            exists = found is not None and found.marker is not None
            if context.apply:
                found = (await survey(host, spec.root, name=spec.name)).at(spec)
        chosen = found.marker.gpus if found is not None and found.marker is not None else ()
        return Creation(plan, exists, chosen, context.apply)


@asynccontextmanager
async def _as_it_is(api: Api, node: str) -> AsyncIterator[bool]:
    """Whether a node is closed."""
    yield await is_cordoned(api, node)


@asynccontextmanager
async def _closed(api: Api, host: Host, spec: WorkspaceSpec) -> AsyncIterator[bool]:
    """Close a node before its GPUs are chosen, and tell whether it was; it stays so.

    If the block fails it is opened again, unless another workspace came that needs it closed.
    """
    done = await _cordon(api, spec.node, spec.path)
    try:
        # What is cordoned for another workspace is ours to open, too, once all of them are gone.
        yield done.before and not done.reason_before
    except BaseException as failure:
        if not done.before:
            try:
                await asyncio.shield(_open_if_unneeded(api, host, spec))
            except KvestigateError:
                if isinstance(failure, KvestigateError):
                    way_out = f"open the node by hand: kvestigate workspace uncordon {spec.node}"
                    failure.hint = "; ".join(filter(None, (failure.hint, way_out)))
                raise failure from None
        raise


async def _cordon(api: Api, node: str, workspace: str) -> Cordoning:
    reason = cordon_reason(workspace, datetime.now(UTC))
    return await set_cordoned(api, node, True, apply=True, reason=reason)


async def _open_if_unneeded(api: Api, host: Host, spec: WorkspaceSpec) -> None:
    """As if the workspace that did not come to be were destroyed."""
    others: Sequence[Marker] = ()
    with suppress(KvestigateError):  # where nobody can look, nobody can have come
        others = (await survey(host, DEFAULT_ROOT, spec.root)).markers
    step = reopen(Marker(workspace=spec, created_at=""), others)
    await _do(api, host, step, step.script)


async def destroy(context: Context, options: DestroyOptions) -> Destruction:
    """Stop what runs in a workspace, and remove it; nothing is done if there is none."""
    spec = options.workspace
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(spec.node)
        seen = await survey(host, DEFAULT_ROOT, spec.root)
        # An agent learns nothing of what others have: for it, that does not exist.
        own = context.rules is None or _owner_at(spec, seen) == context.owner
        plan = plan_destruction(spec, seen) if own else nothing_to_remove(spec)
        if context.apply:
            await carry_out(api, host, plan)
        return Destruction(plan, context.apply)


async def export(context: Context, options: ExportOptions) -> Export:
    """A workspace as it was made: what its marker says."""
    name, node, root = options.name, options.node, options.root
    wanted = WorkspaceSpec(name=name, node=node, root=root)
    async with connect(context.access) as api:
        host = (await reach(api, context.via)).host(node)
        return Export(existing(context, wanted, await survey(host, root, name=name)).workspace)


async def carry_out(api: Api, host: Host, plan: Plan) -> None:
    """All steps, or none: those that were done are taken back if one fails."""
    begun: list[Step] = []
    try:
        for step in plan.steps:
            begun.append(step)
            await _do(api, host, step, step.script)
    except BaseException as failure:
        if isinstance(failure, TakenMeanwhile):
            begun.pop()  # what is there is the other's, and not ours to take back
        left = await _take_back(api, host, begun)
        if left and isinstance(failure, KvestigateError):
            failure.hint = f"left behind on {host.node}: {left}"
        raise


async def _take_back(api: Api, host: Host, begun: Sequence[Step]) -> str:
    """What could not be taken back. The last step may have done its work in part, or not at all."""
    left: list[str] = []
    for step in reversed(begun):
        if step.undo:
            try:
                await asyncio.shield(_do(api, host, step, step.undo))
            except KvestigateError as error:
                if step is not begun[-1]:
                    left.append(f"{step.line} ({error.message})")
    return "; ".join(left)


async def _do(api: Api, host: Host, step: Step, script: str) -> None:
    if step.cordon is not None:
        if step.cordon:
            await _cordon(api, host.node, step.workspace)
        else:
            await set_cordoned(api, host.node, False, apply=True)
        return
    done = await attempt(staying(host), script, timeout=_STEP_SECONDS)
    if done.exit_code == TAKEN:
        raise TakenMeanwhile(f"{host.node}: {complaint(done)}", hint="try again")
    if done.exit_code:
        raise KvestigateError(f"{host.node}: {complaint(done)}")


async def _plan(
    context: Context, api: Api, host: Host, spec: WorkspaceSpec, seen: Survey, *, cordoned: bool
) -> Plan:
    found = seen.at(spec)
    chosen: tuple[GpuId, ...] = ()
    fencing = Fencing.NONE
    if found is None or found.marker is None:
        fencing = await _fencing(context, host)
        if spec.gpu.reserve or spec.gpu.indices:
            known = (await gpus_of(api, {spec.node: host}, {spec.node: seen.claims}))[spec.node]
            if isinstance(known, KvestigateError):
                raise known
            seen_by = known if context.rules is None else anonymous(known)
            chosen = choose(spec.gpu, seen_by, spec.node)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wish = Wish(spec, chosen, context.owner, now, fencing, context.rules is not None)
    return plan_creation(wish, seen, cordoned=cordoned)


async def _fencing(context: Context, host: Host) -> Fencing:
    """How far a new workspace is fenced in; Conflict if that is not far enough."""
    rules = context.rules
    if rules is None or rules.isolation is Isolation.NONE:
        return Fencing.NONE
    missing = await lacks(host)
    fencing = possible(missing)
    if rules.isolation is Isolation.REQUIRED and fencing is not Fencing.FULL:
        raise Conflict(
            f"node {host.node!r} cannot fence runs in: it lacks {'; '.join(missing)}",
            hint="choose another node; the operator can install what is missing there, or set "
            "runs.isolation: best-effort",
        )
    return fencing


async def is_cordoned(api: Api, node: str) -> bool:
    found: Node = await api.get(_NODES, node, type=Node)
    return found.spec.unschedulable


def existing(context: Context, spec: WorkspaceSpec, seen: Survey) -> Marker:
    """The marker of the workspace, if it is fenced in as the agent's rules say."""
    marker = _own(context, spec, seen)
    required = context.rules is not None and context.rules.isolation is Isolation.REQUIRED
    if required and marker.fencing is not Fencing.FULL:
        raise Conflict(
            f"workspace {spec.name!r} on {spec.node} is not fenced in",
            hint="destroy it and make it anew",
        )
    return marker


def _own(context: Context, spec: WorkspaceSpec, seen: Survey) -> Marker:
    """The marker of the workspace, or an error that says what to do.

    For an agent there are no workspaces but its own.
    """
    found = seen.at(spec)
    marker = None if found is None else found.marker
    if context.rules is not None and (marker is None or marker.owner != context.owner):
        raise NotFound(f"you have no workspace {spec.name!r} on {spec.node}")
    if marker is None:
        raise NotFound(
            f"there is no workspace {spec.name!r} on {spec.node}: {spec.path} "
            + ("does not exist" if found is None else "has no marker"),
            hint="kvestigate workspace status shows which there are; create makes one",
        )
    return marker


def _owner_at(spec: WorkspaceSpec, seen: Survey) -> str | None:
    """Whose workspace is there; None if there is none."""
    found = seen.at(spec)
    return None if found is None or found.marker is None else found.marker.owner


async def _surveys(hosts: Mapping[str, Host], *roots: str) -> dict[str, Survey | KvestigateError]:
    return await ask_each(hosts, lambda host: survey(host, *roots))


def _chosen(hosts: Hosts, nodes: tuple[str, ...]) -> tuple[dict[str, Host], dict[str, str]]:
    """The hosts that were asked for, or all; and those of them that cannot be reached.

    One that is named and cannot be reached is an error only if no other one can.
    """
    if not nodes:
        return dict(hosts.nodes), dict(hosts.unreachable)
    chosen = {node: hosts.nodes[node] for node in nodes if node in hosts.nodes}
    if not chosen:
        hosts.host(nodes[0])
    missing = {node: hosts.unreachable.get(node, "there is no such node") for node in nodes}
    return chosen, {node: why for node, why in missing.items() if node not in chosen}


def _views(seen: Survey) -> Iterable[WorkspaceView]:
    for found in seen.found:
        if found.marker is None:
            continue
        spec = found.marker.workspace
        yield WorkspaceView(
            name=spec.name,
            node=spec.node,
            root=spec.root,
            path=spec.path,
            storage=spec.storage.mode.value,
            tmpfs_bytes=seen.mounts.get(spec.tmpfs_path, 0),
            memory_limit=spec.storage.tmpfs_bytes,
            gpus=found.marker.gpus,
            cordoned=found.marker.cordoned,
            created_at=found.marker.created_at,
            owner=found.marker.owner,
            runs=tuple(found.runs),
            alive=sum(run.state is RunState.RUNNING for run in found.runs),
            fencing=found.marker.fencing,
        )


def _lost(seen: Survey) -> tuple[str, ...]:
    made = (marker.workspace for marker in seen.markers)
    return tuple(
        workspace.path
        for workspace in made
        if workspace.tmpfs_path and workspace.tmpfs_path not in seen.mounts
    )
