"""What has to be done so that one shard of an App runs in its workspace, or is gone."""

from __future__ import annotations

import asyncio
import io
import re
import tarfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kvestigate.app.digest import digest
from kvestigate.app.launch import CONFIG_SUBDIR, CompiledWorkspace
from kvestigate.app.model import Action, Step
from kvestigate.app.spec import AppSpec, Lifecycle
from kvestigate.errors import AlreadyExists, Conflict
from kvestigate.operation import Context
from kvestigate.render.human import size
from kvestigate.workspace.archives import Archive, Directory, Material
from kvestigate.workspace.lifecycle import WorkspaceView, create, destroy
from kvestigate.workspace.options import (
    CreateOptions,
    DestroyOptions,
    KillOptions,
    LogsOptions,
    RunOptions,
)
from kvestigate.workspace.running import Run, RunState
from kvestigate.workspace.runs import follow, kill, run
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.sync import Wanted, bring

_PATIENCE = 10.0
"""Seconds that a program has to end before it is killed."""


@dataclass(frozen=True, slots=True)
class Place:
    """An App, and how its hosts are reached."""

    context: Context
    """Its owner is empty, or within a cyberspace the identity: `pool/ada`."""
    spec: AppSpec
    directory: Path = Path()
    """Where the `local` of sources is relative to."""

    @property
    def owner(self) -> str:
        """What the workspaces' markers say."""
        return f"{self.context.owner} app {self.spec.full_name}".strip()

    @property
    def planning(self) -> Context:
        return replace(self.context, owner=self.owner, apply=False)

    @property
    def acting(self) -> Context:
        return replace(self.context, owner=self.owner, apply=True)


@dataclass(frozen=True, slots=True)
class Task:
    """One step that can be done."""

    step: Step
    """As it is planned."""
    do: Callable[[], Awaitable[str | None]] | None = None
    """Says what came of it, if that was not known before. None: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about one workspace."""

    node: str
    preparing: tuple[Task, ...]
    starting: tuple[Task, ...] = ()

    @property
    def tasks(self) -> tuple[Task, ...]:
        return self.preparing + self.starting


async def plan_shard(place: Place, shard: CompiledWorkspace, view: WorkspaceView | None) -> Plan:
    node = shard.workspace.node
    try:
        making = await _plan_creation(place, shard.workspace)
    except (AlreadyExists, Conflict) as error:
        hint = "take the App down to make it anew" if view is not None else error.hint
        reason = f"{error.message}; {hint}" if hint else error.message
        return Plan(node, (Task(Step(Action.CONFLICT, _named(shard.workspace), reason)),))
    filling = [await _plan_sync(place, what, source) for what, source in _materials(place, shard)]
    code_changed = any(task.step.action is not Action.UNCHANGED for task in filling)
    running = _plan_run(place, shard, view.runs if view else (), code_changed=code_changed)
    return Plan(node, (making, *filling), tuple(running))


async def _plan_creation(place: Place, spec: WorkspaceSpec) -> Task:
    wanted = CreateOptions(spec)
    found = await create(place.planning, wanted)
    lines = tuple(step.line for step in found.plan.steps)
    if not lines:
        return Task(Step(Action.UNCHANGED, _named(spec)))
    action = Action.CHANGE if found.exists else Action.CREATE

    async def make() -> str:
        made = await create(place.acting, wanted)
        return ", ".join(f"GPU {gpu.index} ({gpu.uuid})" for gpu in made.gpus)

    # Which GPUs is known when they are taken: shards on the same node take some before.
    count = spec.gpu.reserve
    reason = f"with {count} free GPU{'s' if count > 1 else ''}" if count else ""
    return Task(Step(action, _named(spec), reason, script=lines), make)


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
    return Archive(packed)


async def _plan_sync(place: Place, what: str, wanted: Wanted) -> Task:
    found = await bring(place.planning, wanted)
    subject = f"{what} in {wanted.subdir}/ of {wanted.spec.name} on {found.node}"
    if not found.sent and not found.removed:
        return Task(Step(Action.UNCHANGED, subject))
    parts = [f"{len(found.sent)} new or changed, {size(found.bytes)}"] if found.sent else []
    parts += [f"{len(found.removed)} gone"] if found.removed else []
    step = Step(Action.SYNC, subject, ", ".join(parts))

    async def send() -> None:
        await bring(place.acting, wanted)

    return Task(step, send)


def _plan_run(
    place: Place, shard: CompiledWorkspace, runs: Sequence[Run], *, code_changed: bool
) -> list[Task]:
    spec, launch = shard.workspace, shard.launch
    current = next((known for known in runs if known.tag == launch.tag), None)
    subject = _run_named(spec, launch.tag)
    if current is not None and not code_changed and _is_enough(place.spec, current):
        ended = "" if current.exit_code is None else f"ended with exit code {current.exit_code}"
        return [Task(Step(Action.UNCHANGED, subject, ended))]
    tasks = [
        _stopping(place, spec, other.tag)
        for other in runs
        if other.state is RunState.RUNNING and _is_of(place.spec, other)
    ]
    wanted = RunOptions(spec, launch.tag, launch.command, env=launch.env, limits=launch.limits)
    step = Step(Action.START, subject, f"log in {spec.path}/logs/{launch.tag}.log")

    async def start() -> None:
        await run(place.acting, wanted)

    return [*tasks, Task(step, start)]


def _is_enough(spec: AppSpec, current: Run) -> bool:
    """Whether it runs, or was work that has ended."""
    if current.state is RunState.RUNNING:
        return True
    return spec.lifecycle is Lifecycle.BATCH and current.exit_code is not None


def _is_of(spec: AppSpec, other: Run) -> bool:
    """Whether the App started it, rather than somebody by hand."""
    return re.fullmatch(re.escape(spec.metadata.name) + "-[0-9a-f]{8}", other.tag) is not None


def _stopping(place: Place, spec: WorkspaceSpec, tag: str) -> Task:
    async def stop() -> None:
        for signal in ("TERM", "KILL"):
            await kill(place.acting, KillOptions(spec, tag, signal))
            try:
                async with asyncio.timeout(_PATIENCE):
                    # Its log ends when it does.
                    async for _ in follow(place.acting, LogsOptions(spec, tag, 0)):
                        pass
                return
            except TimeoutError:
                continue

    return Task(Step(Action.STOP, _run_named(spec, tag), "another one takes its place"), stop)


async def plan_removal(place: Place, spec: WorkspaceSpec) -> Plan:
    found = await destroy(place.planning, DestroyOptions(spec))
    lines = tuple(step.line for step in found.plan.steps)
    step = Step(Action.DELETE, _named(spec), "; ".join(found.plan.notes), script=lines)

    async def remove() -> None:
        await destroy(place.acting, DestroyOptions(spec))

    return Plan(spec.node, (Task(step, remove),))


def _named(spec: WorkspaceSpec) -> str:
    return f"workspace {spec.name} on {spec.node}"


def _run_named(spec: WorkspaceSpec, tag: str) -> str:
    return f"run {tag} on {spec.node}"
