"""An App on hosts: its workspaces are planned, and if all of the plan can be done, it is.

What is planned for a single workspace is in `shards`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from kvestigate.app.launch import compile_to_hosts
from kvestigate.app.model import Action, Prepared, Step
from kvestigate.app.shards import Place, Plan, Task, plan_removal, plan_shard
from kvestigate.client.connect import connect
from kvestigate.errors import KvestigateError
from kvestigate.kube import builtins
from kvestigate.kube.views.core import Node
from kvestigate.workspace.lifecycle import WorkspaceView, status
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.options import StatusOptions
from kvestigate.workspace.spec import WorkspaceSpec

_NODES = builtins.resource("nodes")
_TOGETHER = 8
"""Workspaces under way at a time."""


async def up(place: Place) -> Prepared:
    """Workspaces, files and runs as the App says; what an earlier version had more is removed."""
    addresses = await _addresses(place) if place.spec.distributed is not None else {}
    shards = compile_to_hosts(place.spec, addresses).shards
    found, _ = await _look(place)
    wanted = {_key(shard.workspace.node, shard.workspace.path): shard for shard in shards}
    plans = await _together(
        [plan_shard(place, shard, found.get(key)) for key, shard in wanted.items()]
    )
    left = [_spec_of(view) for key, view in found.items() if key not in wanted]
    plans += await _together([plan_removal(place, spec) for spec in left])
    return _prepared(plans)


async def down(place: Place) -> Prepared:
    """The App's workspaces go, with all that is in them."""
    found, lost = await _look(place)
    specs = [_spec_of(view) for view in found.values()]
    specs += [
        shard.workspace
        for shard in compile_to_hosts(place.spec).shards
        if shard.workspace.path in lost.get(shard.workspace.node, ())
    ]
    plans = await _together([plan_removal(place, spec) for spec in specs])
    return _prepared(plans)


async def _addresses(place: Place) -> dict[str, str]:
    """At which the nodes find each other."""
    async with connect(place.context.access) as api:
        nodes = [await api.get(_NODES, name, type=Node) for name in place.spec.nodes]
    return {
        node.metadata.name: address.address
        for node in nodes
        for address in node.status.addresses
        if address.type == "InternalIP"
    }


async def _look(place: Place) -> tuple[dict[str, WorkspaceView], Mapping[str, tuple[str, ...]]]:
    """What the hosts have of the App; and by node, where nothing is left after a restart."""
    root = place.spec.workspace.root or DEFAULT_ROOT
    seen = await status(place.planning, StatusOptions(place.spec.nodes, root))
    for node, why in seen.unreachable.items():
        raise KvestigateError(
            f"cannot look at the workspaces of {place.spec.full_name} on {node}: {why}",
            hint="kvestigate workspace status shows which nodes can be reached",
        )
    own = {
        _key(view.node, view.path): view for view in seen.workspaces if view.owner == place.owner
    }
    return own, seen.lost


def _key(node: str, path: str) -> str:
    return f"{node}:{path}"


def _spec_of(view: WorkspaceView) -> WorkspaceSpec:
    """Enough of it to remove it: the rest is in its marker."""
    return WorkspaceSpec(name=view.name, node=view.node, root=view.root)


async def _together(waiting: Sequence[Awaitable[Plan]]) -> list[Plan]:
    """All, some at a time; the first failure is raised when none is under way any more."""
    room = asyncio.Semaphore(_TOGETHER)

    async def one(plan: Awaitable[Plan]) -> Plan:
        async with room:
            return await plan

    found = await asyncio.gather(*map(one, waiting), return_exceptions=True)
    for outcome in found:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in found if not isinstance(outcome, BaseException)]


def _prepared(plans: Sequence[Plan]) -> Prepared:
    steps = tuple(task.step for plan in plans for task in plan.tasks)
    return Prepared(steps, lambda: _carried_out(plans))


async def _carried_out(plans: Sequence[Plan]) -> tuple[Step, ...]:
    """Nothing is started before all workspaces are ready: shards wait for each other."""
    ready = await _each(plans, lambda plan: plan.preparing)
    if all(step.action.good for steps in ready for step in steps):
        started = await _each(plans, lambda plan: plan.starting)
    else:
        started = [[_skipped(task) for task in plan.starting] for plan in plans]
    return tuple(
        step for pair in zip(ready, started, strict=True) for steps in pair for step in steps
    )


async def _each(plans: Sequence[Plan], part: Callable[[Plan], Sequence[Task]]) -> list[list[Step]]:
    """On one node one after the other, since they take from the same GPUs."""
    nodes = {plan.node: asyncio.Lock() for plan in plans}
    room = asyncio.Semaphore(_TOGETHER)

    async def one(plan: Plan) -> list[Step]:
        async with nodes[plan.node], room:
            return await _done(part(plan))

    return list(await asyncio.gather(*map(one, plans)))


async def _done(tasks: Sequence[Task]) -> list[Step]:
    """A failure ends what is planned for this workspace, and no other."""
    done: list[Step] = []
    for number, task in enumerate(tasks):
        try:
            reason = await task.do() if task.do is not None else None
        except KvestigateError as error:
            why = f"{error.message}; {error.hint}" if error.hint else error.message
            done.append(replace(task.step, action=Action.FAIL, reason=why))
            return done + [_skipped(rest) for rest in tasks[number + 1 :]]
        done.append(task.step if reason is None else replace(task.step, reason=reason))
    return done


def _skipped(task: Task) -> Step:
    """What was to be left alone is what it was to be."""
    return replace(task.step, action=Action.SKIP) if task.do is not None else task.step
