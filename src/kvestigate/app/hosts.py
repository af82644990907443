"""An App on hosts: a workspace a shard, filled, and the program started in it.

All is planned before anything is done, and if a part of the plan cannot be, nothing is.
"""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kvestigate.app.digest import digest
from kvestigate.app.launch import CONFIG_SUBDIR, CompiledWorkspace, compile_to_hosts
from kvestigate.app.model import Action, Step
from kvestigate.app.spec import AppSpec, Lifecycle
from kvestigate.client.access import Access
from kvestigate.errors import AlreadyExists, Conflict, KvestigateError
from kvestigate.hosts.model import NodeAccess
from kvestigate.render.human import size
from kvestigate.workspace.archives import Archive, Directory, Material
from kvestigate.workspace.lifecycle import WorkspaceView, create, destroy, status
from kvestigate.workspace.options import (
    CreateOptions,
    DestroyOptions,
    KillOptions,
    LogsOptions,
    RunOptions,
    StatusOptions,
)
from kvestigate.workspace.running import Run, RunState
from kvestigate.workspace.runs import follow, kill, run
from kvestigate.workspace.spec import DEFAULT_ROOT, WorkspaceSpec
from kvestigate.workspace.sync import Wanted, bring

_TOGETHER = 8
"""Workspaces under way at a time."""
_PATIENCE = 10.0
"""Seconds that a program has to end before it is killed."""


@dataclass(frozen=True, slots=True)
class Place:
    """An App, and how its hosts are reached."""

    access: Access
    via: NodeAccess
    spec: AppSpec
    directory: Path = Path()
    """Where the `local` of sources is relative to."""

    @property
    def owner(self) -> str:
        """What the workspaces' markers say."""
        return f"app {self.spec.full_name}"


@dataclass(frozen=True, slots=True)
class _Task:
    """One step that can be done."""

    step: Step
    do: Callable[[], Awaitable[object]] | None = None
    """None: there is nothing to do."""


async def up(place: Place, *, apply: bool) -> tuple[Step, ...]:
    """Workspaces, files and runs as the App says; what an earlier version had more is removed."""
    shards = compile_to_hosts(place.spec).shards
    found = await _own_workspaces(place)
    wanted = {_key(it.workspace.node, it.workspace.path): it for it in shards}
    plans = await _together([_plan_shard(place, it, found.get(key)) for key, it in wanted.items()])
    left = [it for key, it in found.items() if key not in wanted]
    plans += await _together([_plan_removal(place, it) for it in left])
    return await _carried_out(plans, apply=apply)


async def down(place: Place, *, apply: bool) -> tuple[Step, ...]:
    """The App's workspaces go, with all that is in them."""
    found = await _own_workspaces(place)
    plans = await _together([_plan_removal(place, it) for it in found.values()])
    return await _carried_out(plans, apply=apply)


async def _own_workspaces(place: Place) -> dict[str, WorkspaceView]:
    """By node and path: what the hosts have of the App."""
    root = place.spec.workspace.root or DEFAULT_ROOT
    seen = await status(place.access, StatusOptions(place.spec.nodes, root), place.via)
    return {_key(it.node, it.path): it for it in seen.workspaces if it.owner == place.owner}


def _key(node: str, path: str) -> str:
    return f"{node}:{path}"


async def _together(waiting: Sequence[Awaitable[list[_Task]]]) -> list[list[_Task]]:
    """All, some at a time; the first failure is raised when none is under way any more."""
    room = asyncio.Semaphore(_TOGETHER)

    async def one(it: Awaitable[list[_Task]]) -> list[_Task]:
        async with room:
            return await it

    found = await asyncio.gather(*map(one, waiting), return_exceptions=True)
    for it in found:
        if isinstance(it, BaseException):
            raise it
    return [it for it in found if not isinstance(it, BaseException)]


async def _carried_out(plans: Iterable[list[_Task]], *, apply: bool) -> tuple[Step, ...]:
    plans = list(plans)
    steps = tuple(task.step for plan in plans for task in plan)
    if not apply or not all(it.action.good for it in steps):
        return steps
    room = asyncio.Semaphore(_TOGETHER)

    async def one(plan: list[_Task]) -> list[Step]:
        async with room:
            return await _done(plan)

    return tuple(it for done in await asyncio.gather(*map(one, plans)) for it in done)


async def _done(plan: Sequence[_Task]) -> list[Step]:
    """A failure ends what is planned for this workspace, and no other."""
    done: list[Step] = []
    for number, task in enumerate(plan):
        try:
            if task.do is not None:
                await task.do()
        except KvestigateError as error:
            said = f"{error.message}; {error.hint}" if error.hint else error.message
            done.append(replace(task.step, action=Action.FAIL, reason=said))
            return done + [replace(it.step, action=Action.SKIP) for it in plan[number + 1 :]]
        done.append(task.step)
    return done


# Planning.


async def _plan_shard(
    place: Place, shard: CompiledWorkspace, view: WorkspaceView | None
) -> list[_Task]:
    try:
        making = await _plan_creation(place, shard.workspace)
    except (AlreadyExists, Conflict) as error:
        hint = "take the App down to make it anew" if view is not None else error.hint
        reason = f"{error.message}; {hint}" if hint else error.message
        return [_Task(Step(Action.CONFLICT, _named(shard.workspace), reason))]
    filling = [await _plan_sync(place, what, it) for what, it in _materials(place, shard)]
    code_changed = any(it.step.action is not Action.UNCHANGED for it in filling)
    running = _plan_run(place, shard, view.runs if view else (), code_changed=code_changed)
    return [making, *filling, *running]


async def _plan_creation(place: Place, spec: WorkspaceSpec) -> _Task:
    wanted = CreateOptions(spec, owner=place.owner)
    found = await create(place.access, wanted, place.via)
    lines = tuple(it.line for it in found.plan.steps)
    if not lines:
        return _Task(Step(Action.UNCHANGED, _named(spec)))
    action = Action.CHANGE if found.exists else Action.CREATE
    step = Step(action, _named(spec), "; ".join(found.plan.notes), script=lines)
    return _Task(step, lambda: create(place.access, replace(wanted, apply=True), place.via))


def _materials(place: Place, shard: CompiledWorkspace) -> Iterable[tuple[str, Wanted]]:
    spec = shard.workspace
    for source in spec.sources:
        local = place.directory / Path(source.local).expanduser()
        files = Directory(local, source.excludes)
        yield (
            source.local,
            Wanted(spec, source.subdir, files, delete=False, excludes=source.excludes),
        )
    if shard.launch.files:
        config = config_files(shard.launch.files)
        yield "config files", Wanted(spec, CONFIG_SUBDIR, config, delete=True)


def config_files(files: Mapping[str, str]) -> Material:
    """Texts as files. Files are compared by size and time, so the time is made of the text."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in files.items():
            content = text.encode()
            info = tarfile.TarInfo(name)
            info.size = len(content)
            info.mtime = int(digest(text)[:7], 16)
            tar.addfile(info, io.BytesIO(content))
    return Archive(packed.getvalue())


async def _plan_sync(place: Place, what: str, wanted: Wanted) -> _Task:
    found = await bring(place.access, wanted, apply=False, via=place.via)
    subject = f"{what} in {found.directory} on {found.node}"
    if not found.sent and not found.removed:
        return _Task(Step(Action.UNCHANGED, subject))
    parts = [f"{len(found.sent)} to send, {size(found.bytes)}"] if found.sent else []
    parts += [f"{len(found.removed)} to remove"] if found.removed else []
    step = Step(Action.SYNC, subject, ", ".join(parts))
    return _Task(step, lambda: bring(place.access, wanted, apply=True, via=place.via))


def _plan_run(
    place: Place, shard: CompiledWorkspace, runs: Sequence[Run], *, code_changed: bool
) -> list[_Task]:
    spec, launch = shard.workspace, shard.launch
    current = next((it for it in runs if it.tag == launch.tag), None)
    subject = _run_named(spec, launch.tag)
    if current is not None and not code_changed and _is_enough(place.spec, current):
        ended = "" if current.exit_code is None else f"ended with exit code {current.exit_code}"
        return [_Task(Step(Action.UNCHANGED, subject, ended))]
    tasks = [
        _stopping(place, spec, it.tag)
        for it in runs
        if it.state is RunState.RUNNING and _is_of(place.spec, it)
    ]
    wanted = RunOptions(spec, launch.tag, launch.command, env=launch.env, apply=True)
    step = Step(Action.START, subject, f"log in {spec.path}/logs/{launch.tag}.log")
    return [*tasks, _Task(step, lambda: run(place.access, wanted, place.via))]


def _is_enough(spec: AppSpec, current: Run) -> bool:
    """Whether it runs, or was work that has ended."""
    if current.state is RunState.RUNNING:
        return True
    return spec.lifecycle is Lifecycle.BATCH and current.exit_code is not None


def _is_of(spec: AppSpec, it: Run) -> bool:
    """Whether the App started it, rather than somebody by hand."""
    return re.fullmatch(re.escape(spec.metadata.name) + "-[0-9a-f]{8}", it.tag) is not None


def _stopping(place: Place, spec: WorkspaceSpec, tag: str) -> _Task:
    async def stop() -> None:
        for signal in ("TERM", "KILL"):
            wanted = KillOptions(spec, tag, signal, apply=True)
            await kill(place.access, wanted, place.via)
            try:
                async with asyncio.timeout(_PATIENCE):
                    # Its log ends when it does.
                    async for _ in follow(place.access, LogsOptions(spec, tag, 0), place.via):
                        pass
                return
            except TimeoutError:
                continue

    return _Task(Step(Action.STOP, _run_named(spec, tag), "another one takes its place"), stop)


async def _plan_removal(place: Place, view: WorkspaceView) -> list[_Task]:
    spec = WorkspaceSpec(name=view.name, node=view.node, root=view.root)
    found = await destroy(place.access, DestroyOptions(spec), place.via)
    lines = tuple(it.line for it in found.plan.steps)
    step = Step(Action.DELETE, _named(spec), script=lines)
    wanted = DestroyOptions(spec, apply=True)
    return [_Task(step, lambda: destroy(place.access, wanted, place.via))]


def _named(spec: WorkspaceSpec) -> str:
    return f"workspace {spec.name} on {spec.node}"


def _run_named(spec: WorkspaceSpec, tag: str) -> str:
    return f"run {tag} on {spec.node}"
