"""Starting, listing, reading and signalling the runs of a workspace."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from kvestigate.client.api import Api
from kvestigate.client.connect import connect
from kvestigate.client.streams import Channel, Completed
from kvestigate.errors import Conflict, InputError, KvestigateError, NotFound
from kvestigate.kube.patterns import TooCostly, compiled
from kvestigate.node_access.reach import Host, reach
from kvestigate.node_access.remote import Output
from kvestigate.operation import Context, RunRules
from kvestigate.workspace.devices import gpus_of
from kvestigate.workspace.gpus import Gpu, anonymous, choose_for_run
from kvestigate.workspace.host import attempt, complaint, legible, looking, perform, staying
from kvestigate.workspace.lifecycle import existing
from kvestigate.workspace.limits import Kept, Limits
from kvestigate.workspace.marker import GpuId
from kvestigate.workspace.names import DEFAULT_ROOT
from kvestigate.workspace.options import KillOptions, LogsOptions, PsOptions, RunOptions
from kvestigate.workspace.plan import Plan
from kvestigate.workspace.running import (
    BUSY,
    NO_PROGRAM,
    NOT_RUNNING,
    Launching,
    Run,
    RunState,
    follow_script,
    kill_script,
    launch_script,
    read_script,
)
from kvestigate.workspace.shell import assigned
from kvestigate.workspace.spec import WorkspaceSpec
from kvestigate.workspace.steps import TAKEN, Step
from kvestigate.workspace.survey import Survey, survey
from kvestigate.workspace.uploads import in_background

LONGEST_ANSWER = 4 << 20
"""Bytes of a log that one answer holds at most: its end."""
_COMPLAINT = 4096
"""Bytes of what a failure says that are kept."""


@dataclass(frozen=True, slots=True)
class Launch:
    plan: Plan
    tag: str
    gpus: tuple[GpuId, ...]
    pid: int | None
    """None if it was not started."""
    applied: bool
    limits: Limits = field(default_factory=Limits)
    kept: Kept = field(default_factory=Kept)


@dataclass(frozen=True, slots=True)
class RunList:
    workspace: str
    node: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Log:
    run: Run
    text: str
    truncated: bool = False
    """Whether it is longer than an answer may be, and its beginning is missing."""
    offset: int = 0
    """Bytes of the log before the text."""


@dataclass(frozen=True, slots=True)
class Killing:
    plan: Plan
    run: Run
    """As it was before."""
    signal: str
    signalled: bool
    """False if it was not running, or was only looked at."""
    applied: bool


async def run(context: Context, options: RunOptions) -> Launch:
    """Start a command that goes on when we are gone."""
    spec = options.workspace
    async with _host(context, spec) as (api, host):
        seen = await survey(host, DEFAULT_ROOT, spec.root)
        marker = existing(context, spec, seen)
        _check_free(options, seen)
        known: tuple[Gpu, ...] = ()
        if options.gpus and not marker.gpus:
            known = await _gpus(api, host, seen)
            known = known if context.rules is None else anonymous(known)
        gpus = choose_for_run(options.gpus, marker.gpus, known, spec.node)
        rules = context.rules or RunRules()
        options = replace(options, limits=options.limits.within(rules.cpu, rules.memory))
        launching = Launching(options, marker, gpus, rules.processes, rules.infiniband)
        script = launch_script(launching)
        line = f"start {options.tag} in {spec.path}/code, log in logs/{options.tag}.log"
        plan = Plan(spec.name, spec.node, spec.path, (Step(line, script),))
        if not context.apply:
            return Launch(plan, options.tag, gpus, None, False, options.limits)
        done = await attempt(staying(host), script)
        if done.exit_code == BUSY:
            raise _busy(options.tag)
        if done.exit_code == TAKEN:
            raise Conflict(f"{spec.node}: {complaint(done)}", hint="try again, or name another GPU")
        if done.exit_code == NO_PROGRAM:
            raise InputError(
                f"{options.command[0]}: no such program on {spec.node} or in env/bin",
                hint="sync it into the workspace, or name it with its path",
            )
        if done.exit_code:
            raise KvestigateError(f"{spec.node}: {complaint(done)}")
        pid, kept = done.stdout.decode().split(maxsplit=1)
        return Launch(plan, options.tag, gpus, int(pid), True, options.limits, Kept.parse(kept))


async def ps(context: Context, options: PsOptions) -> RunList:
    spec = options.workspace
    async with _host(context, spec) as (_, host):
        seen = await survey(host, spec.root, name=spec.name)
        existing(context, spec, seen)
        found = seen.at(spec)
        runs = sorted(found.runs if found else (), key=lambda run: (run.started_at, run.tag))
        return RunList(spec.name, spec.node, tuple(runs))


async def logs(context: Context, options: LogsOptions) -> Log:
    """What a run has said so far; of very long logs the end."""
    spec = options.workspace
    async with _host(context, spec) as (_, host):
        run = await _named(context, host, spec, options.tag)
        size = assigned(log=f"{spec.path}/logs/{options.tag}.log") + 'stat -c %s -- "$log"\n'
        tail = None if options.grep else options.tail
        script = size + read_script(spec.path, options.tag, tail, LONGEST_ANSWER)
        length, _, text = (await perform(looking(host), script)).partition("\n")
        shown = len(text.encode("utf-8", "surrogateescape"))
        offset = max(int(length) - shown, 0)
        said = legible(text)
        if options.grep:
            said = await in_background(_matching, said, options)
        return Log(run, said, offset > 0 and shown >= LONGEST_ANSWER, offset)


def _matching(text: str, options: LogsOptions) -> str:
    pattern = compiled(options.grep)
    try:
        pattern.matches(text)
    except TooCostly as error:
        raise InputError(
            str(error), where="grep", hint="write a simpler one, or give tail alone"
        ) from None
    lines = [line for line in text.splitlines(keepends=True) if pattern.matches(line)]
    first = 0 if options.tail is None else max(len(lines) - options.tail, 0)
    return "".join(lines[first:])


async def follow(context: Context, options: LogsOptions) -> AsyncGenerator[bytes, None]:
    """What a run says, until it has ended."""
    spec = options.workspace
    async with _host(context, spec) as (_, host):
        run = await _named(context, host, spec, options.tag)
        script = follow_script(spec.path, run, options.tail)
        said = Output(_COMPLAINT)
        async with looking(host).session(("sh", "-euc", script)) as session:
            async for piece in session:
                if piece.channel is Channel.STDOUT:
                    yield piece.data
                else:
                    said.add(piece.channel, piece.data)
        if session.exit_code:
            why = complaint(Completed(session.exit_code, b"", said.stderr))
            raise KvestigateError(f"{spec.node}: the log of {options.tag} was cut off: {why}")


async def kill(context: Context, options: KillOptions) -> Killing:
    """Send a signal to a run's process group."""
    spec, tag = options.workspace, options.tag
    async with _host(context, spec) as (_, host):
        run = await _named(context, host, spec, tag)
        script = kill_script(spec.path, tag, options.signal)
        line = f"send {options.signal} to the process group {run.pid} of {tag}"
        running = run.state is RunState.RUNNING
        steps = (Step(line, script),) if running else ()
        plan = Plan(spec.name, spec.node, spec.path, steps)
        signalled = False
        if running and context.apply:
            done = await attempt(looking(host), script)
            if done.exit_code not in (0, NOT_RUNNING):
                raise KvestigateError(f"{spec.node}: {complaint(done)}")
            signalled = not done.exit_code
        return Killing(plan, run, options.signal, signalled, context.apply)


@asynccontextmanager
async def _host(context: Context, spec: WorkspaceSpec) -> AsyncIterator[tuple[Api, Host]]:
    async with connect(context.access) as api:
        yield api, (await reach(api, context.via)).host(spec.node)


async def _named(context: Context, host: Host, spec: WorkspaceSpec, tag: str) -> Run:
    seen = await survey(host, spec.root, name=spec.name)
    existing(context, spec, seen)
    found = seen.at(spec)
    runs = {run.tag: run for run in (found.runs if found else ())}
    if tag not in runs:
        known = ", ".join(sorted(runs)) or "none yet"
        raise NotFound(f"workspace {spec.name!r} has no run {tag!r}", hint=f"its runs are: {known}")
    return runs[tag]


async def _gpus(api: Api, host: Host, seen: Survey) -> tuple[Gpu, ...]:
    known = (await gpus_of(api, {host.node: host}, {host.node: seen.claims}))[host.node]
    if isinstance(known, KvestigateError):
        raise known
    return known


def _check_free(options: RunOptions, seen: Survey) -> None:
    found = seen.at(options.workspace)
    for run in found.runs if found else ():
        if run.tag == options.tag and run.state is RunState.RUNNING:
            raise _busy(options.tag)


def _busy(tag: str) -> KvestigateError:
    return Conflict(
        f"tag: {tag!r} is running already",
        hint=f"choose another --tag, or stop it: kvestigate workspace kill {tag}",
    )
