"""What workspaces, their GPUs and their runs look like to people. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, one_line, text
from kvestigate.render.human import counted, size
from kvestigate.workspace.applying import Application, Difference
from kvestigate.workspace.gpus import Use, reason
from kvestigate.workspace.lifecycle import (
    Creation,
    Destruction,
    GpuStatus,
    Status,
    WorkspaceView,
)
from kvestigate.workspace.limits import Kept, Limits
from kvestigate.workspace.marker import GpuId
from kvestigate.workspace.plan import Plan
from kvestigate.workspace.running import Run, RunState
from kvestigate.workspace.runs import Killing, Launch, Log, RunList
from kvestigate.workspace.sync import Synced

_MOST_PATHS = 20
_USES = {
    Use.FREE: Tone.GOOD,
    Use.POD: Tone.PLAIN,
    Use.PROCESS: Tone.PLAIN,
    Use.WORKSPACE: Tone.PLAIN,
    Use.UNSURE: Tone.WARN,
}


def status_blocks(found: Status) -> Sequence[Block]:
    columns = (
        Column("node"),
        Column("workspace"),
        Column("storage"),
        Column("tmpfs", number=True),
        Column("gpus"),
        Column("runs"),
        Column("owner"),
        Column("created"),
        Column("path", wide=True),
        Column("cordoned", wide=True),
    )
    rows = [_workspace_row(view) for view in found.workspaces]
    blocks: list[Block] = [
        Table(columns, rows, empty="no workspaces: kvestigate workspace create makes one")
    ]
    for node, paths in found.lost.items():
        for path in paths:
            blocks.append(text(f"{node}: {path} is empty; a restart may have taken it", Tone.WARN))
    blocks += [
        text(
            f"{cordon.node}: cordoned for {cordon.workspace}, which was never made; open the node: "
            f"kvestigate workspace uncordon {cordon.node} --i-understand-this-modifies-cluster",
            Tone.WARN,
        )
        for cordon in found.cordons
    ]
    return [*blocks, *_unreachable(found.unreachable)]


def _workspace_row(view: WorkspaceView) -> list[str | Cell]:
    return [
        view.node,
        view.name,
        view.storage,
        size(view.tmpfs_bytes) if view.tmpfs_bytes else "-",
        _indices(view.gpus),
        Cell(f"{view.alive}/{len(view.runs)} running", Tone.GOOD if view.alive else Tone.PLAIN),
        view.owner or "-",
        view.created_at,
        view.path,
        "yes" if view.cordoned else "no",
    ]


def gpus_blocks(found: GpuStatus) -> Sequence[Block]:
    columns = (
        Column("node"),
        Column("gpu", number=True),
        Column("model"),
        Column("memory", number=True),
        Column("util", number=True),
        Column("state"),
        Column("by"),
        Column("uuid", wide=True),
    )
    rows: list[list[str | Cell]] = [
        [
            node.node,
            str(gpu.index),
            gpu.model,
            f"{gpu.memory_used_mib}/{gpu.memory_total_mib} MiB",
            "-" if gpu.utilization is None else f"{gpu.utilization:.0f}%",
            Cell(gpu.use.value, _USES[gpu.use]),
            gpu.holder or ("-" if gpu.use is not Use.UNSURE else reason(gpu)),
            gpu.uuid,
        ]
        for node in found.nodes
        for gpu in node.gpus
    ]
    total = sum(len(node.gpus) for node in found.nodes)
    free = sum(node.free for node in found.nodes)
    blocks: list[Block] = [Table(columns, rows, empty="no GPUs on these nodes")]
    if rows:
        blocks.append(text(f"{free} of {total} GPUs are free"))
    return [*blocks, *_unreachable(found.unreachable)]


def difference_blocks(found: Difference) -> Sequence[Block]:
    return [
        *_workspace_difference(found),
        *(block for source in found.sources for block in synced_blocks(source)),
    ]


def _workspace_difference(found: Difference) -> Sequence[Block]:
    where = f"workspace {found.workspace} on {found.node}"
    if not found.exists:
        assert found.plan is not None
        return [text(f"{where} does not exist; create would"), *_steps(found.plan)]
    if not found.changes:
        return [text(f"{where} matches its description", Tone.GOOD)]
    columns = (Column("field"), Column("should be"), Column("is"), Column("remedy"))
    rows: list[list[str | Cell]] = [
        [
            change.field,
            change.wanted or "-",
            change.actual or "-",
            "apply" if change.repairable else Cell("destroy and create", Tone.WARN),
        ]
        for change in found.changes
    ]
    return [text(f"{where} differs"), Table(columns, rows)]


def application_blocks(done: Application) -> Sequence[Block]:
    return [
        *creation_blocks(done.creation),
        *(block for source in done.sources for block in synced_blocks(source)),
    ]


def creation_blocks(done: Creation) -> Sequence[Block]:
    plan = done.plan
    where = f"workspace {plan.workspace} on {plan.node}"
    if not plan.steps:
        return [text(f"{where} exists and matches its description: {plan.path}", Tone.GOOD)]
    if done.applied:
        gpus = f", GPUs {_indices(done.gpus)}" if done.gpus else ""
        return [text(f"{where} is ready: {plan.path}{gpus}", Tone.GOOD)]
    verb = "repair" if done.exists else "create"
    return [text(f"would {verb} {where}"), *_steps(plan)]


def destruction_blocks(done: Destruction) -> Sequence[Block]:
    where = f"workspace {done.plan.workspace} on {done.plan.node}"
    if not done.plan.steps:
        return [text(f"{where} does not exist: nothing to remove")]
    if done.applied:
        return [text(f"{where} is gone", Tone.GOOD)]
    return [text(f"would destroy {where}"), *_steps(done.plan)]


def synced_blocks(done: Synced) -> Sequence[Block]:
    equal = counted(done.equal, "file")
    if not done.sent and not done.removed:
        return [text(f"{done.directory} on {done.node} is up to date ({equal})")]
    verb = ("sent", "removed") if done.applied else ("would send", "would remove")
    said = f"{verb[0]} {_count(done.sent)} ({size(done.bytes)}) to {done.directory} on {done.node}"
    is_ = "is" if done.equal == 1 else "are"
    there = f", {equal} {is_} there already" if done.equal else ""
    blocks: list[Block] = [text(said + there, Tone.GOOD if done.applied else Tone.PLAIN)]
    if not done.applied:
        blocks += _paths("send", done.sent)
    if done.removed:
        blocks.append(text(f"{verb[1]} {_count(done.removed)}"))
        blocks += _paths("remove", done.removed)
    return blocks


def launch_blocks(done: Launch) -> Sequence[Block]:
    plan = done.plan
    gpus = f" with GPUs {_indices(done.gpus)}" if done.gpus else " without GPUs"
    if done.applied:
        return [
            text(f"{done.tag} runs on {plan.node}{gpus}, pid {done.pid}", Tone.GOOD),
            *(text(limit, tone) for limit, tone in _kept(done.limits, done.kept)),
            text(f"log: {plan.path}/logs/{done.tag}.log"),
        ]
    return [text(f"would run {done.tag} on {plan.node}{gpus}"), *_steps(plan)]


def _kept(limits: Limits, kept: Kept) -> Iterator[tuple[str, Tone]]:
    for name in ("cpu", "memory"):
        if amount := getattr(limits, name):
            by = getattr(kept, name)
            said = f"kept by {by}" if by else "nothing on this host keeps it"
            yield f"{name}: {amount}, {said}", Tone.PLAIN if by else Tone.WARN


def _limits(run: Run) -> str:
    return ", ".join(limit for limit, _ in _kept(run.limits, run.kept)) or "-"


def runs_blocks(found: RunList) -> Sequence[Block]:
    columns = (
        Column("tag"),
        Column("state"),
        Column("exit", number=True),
        Column("pid", number=True),
        Column("gpus"),
        Column("limits"),
        Column("started"),
        Column("ended"),
        Column("command"),
    )
    rows: list[list[str | Cell]] = [
        [
            run.tag,
            Cell(run.state.value, _run_tone(run)),
            _exit(run),
            str(run.pid),
            _indices(run.gpus),
            _limits(run),
            run.started_at,
            run.ended_at or "-",
            one_line(shlex.join(run.command)),
        ]
        for run in found.runs
    ]
    return [Table(columns, rows, empty=f"workspace {found.workspace} has no runs")]


def log_blocks(found: Log) -> Sequence[Block]:
    shown = [text(found.text.removesuffix("\n"))] if found.text else []
    if not found.truncated:
        return shown
    return [text(f"(the first {size(found.offset)} of the log are left out)", Tone.DIM), *shown]


def killing_blocks(done: Killing) -> Sequence[Block]:
    run, plan = done.run, done.plan
    if run.state is RunState.EXITED:
        code = "unknown" if run.exit_code is None else str(run.exit_code)
        return [text(f"{run.tag} was not running: it has ended, exit code {code}", Tone.WARN)]
    if not done.applied:
        return [text(f"would {plan.steps[0].line} on {plan.node}")]
    if done.signalled:
        return [text(f"sent {done.signal} to {run.tag} (process group {run.pid})", Tone.GOOD)]
    return [text(f"{run.tag} has just ended by itself", Tone.WARN)]


def _steps(plan: Plan) -> Iterable[Block]:
    """Each step in a line, and below it exactly what runs."""
    for number, step in enumerate(plan.steps, 1):
        script = "".join(f"\n    {line}" for line in step.script.splitlines())
        yield text(f"[{number}] {step.line}{script}")
    for note in plan.notes:
        yield text(note)


def _paths(verb: str, paths: Sequence[str]) -> list[Block]:
    shown = [(verb, path) for path in paths[:_MOST_PATHS]]
    more = len(paths) - len(shown)
    blocks: list[Block] = [Facts(shown)]
    return [*blocks, text(f"and {more} more")] if more else blocks


def _count(paths: Sequence[str]) -> str:
    return counted(len(paths), "path")


def _unreachable(found: dict[str, str]) -> list[Block]:
    return [text(f"{node}: {why}", Tone.WARN) for node, why in found.items()]


def _indices(gpus: Iterable[GpuId]) -> str:
    return ",".join(str(gpu.index) for gpu in gpus) or "-"


def _run_tone(run: Run) -> Tone:
    if run.state is RunState.RUNNING:
        return Tone.GOOD
    return Tone.DIM if run.exit_code == 0 else Tone.BAD


def _exit(run: Run) -> str:
    if run.state is RunState.RUNNING:
        return "-"
    return "?" if run.exit_code is None else str(run.exit_code)
