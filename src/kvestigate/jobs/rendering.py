"""Tables of tasks and volumes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from kvestigate.jobs.answers import (
    EndpointResponse,
    Explanation,
    HistoryResponse,
    NodeView,
    State,
    TaskListResponse,
    TaskStatus,
    TaskView,
    VolumeFiles,
    VolumeListResponse,
    VolumeStatus,
)
from kvestigate.jobs.interface import ListRequest
from kvestigate.render.blocks import Block, Cell, Facts, Field, Tone, one_line, table, text
from kvestigate.render.human import age

_TONES = {
    State.PENDING: Tone.WARN,
    State.RUNNING: Tone.GOOD,
    State.FAILED: Tone.BAD,
    State.COMPLETED: Tone.DIM,
}
_ENDS = {"failed": Tone.BAD, "completed": Tone.GOOD, "stopped": Tone.WARN, "unknown": Tone.DIM}
_PHASES = {"Bound": Tone.GOOD, "Lost": Tone.BAD}


class _Answer(Protocol):
    @property
    def message(self) -> str: ...


class _TableRequest(Protocol):
    @property
    def details(self) -> bool: ...
    @property
    def all_users(self) -> bool: ...


def message_blocks(answer: _Answer) -> Sequence[Block]:
    """What was done, in the launcher's own words."""
    return [text(answer.message)]


def task_list_blocks(request: _TableRequest, listed: TaskListResponse) -> Sequence[Block]:
    wide = not request.details
    shown = table(
        listed.tasks,
        Field("TASK ID", lambda task: task.task_id),
        Field("NAME", lambda task: task.name),
        Field("STATUS", lambda task: _state(task.status)),
        Field("CREATED", lambda task: _shown(task.created_at)),
        Field("USER", lambda task: task.username, wide=wide and not request.all_users),
        Field("NAMESPACE", lambda task: task.metadata.namespace, wide=wide),
        Field("JOBS", lambda task: ", ".join(task.metadata.node_jobs), wide=wide),
        empty="no tasks: k8s-cli jobs submit TASK.yaml starts one",
    )
    return [shown]


def _state(state: State) -> Cell:
    return Cell(state.value, _TONES[state])


def task_blocks(task: TaskStatus) -> Sequence[Block]:
    meta = task.metadata
    counts = (
        f"{meta.succeeded_nodes} succeeded, {meta.failed_nodes} failed, "
        f"{meta.running_nodes} running, {meta.pending_nodes} pending"
    )
    return [
        Facts(
            [
                ("task", task.task_id),
                ("name", task.name),
                ("status", _state(task.status)),
                ("user", task.username),
                ("namespace", meta.namespace),
                ("nodes", f"{meta.num_nodes} ({counts})"),
                ("jobs", ", ".join(meta.node_jobs)),
                ("created", _shown(task.created_at)),
                ("updated", _shown(task.updated_at)),
            ]
        )
    ]


def explanation_blocks(explanation: Explanation) -> Sequence[Block]:
    return [
        Facts([("task", explanation.task_id), ("status", _state(explanation.status))]),
        *(text(cause) for cause in explanation.causes),
        *(text(f"try: {way_out}", Tone.STRONG) for way_out in explanation.advice),
    ]


def volume_list_blocks(request: _TableRequest, listed: VolumeListResponse) -> Sequence[Block]:
    wide = not request.details
    shown = table(
        listed.volumes,
        Field("VOLUME ID", lambda volume: volume.volume_id),
        Field("NAME", lambda volume: volume.name),
        Field("SIZE", lambda volume: volume.size),
        Field("STATUS", _phase),
        Field("CREATED", lambda volume: _shown(volume.created_at)),
        Field("USER", lambda volume: volume.username, wide=wide and not request.all_users),
        Field("STORAGE CLASS", lambda volume: volume.storage_class or "", wide=wide),
        Field("ACCESS MODES", lambda volume: ",".join(volume.access_modes), wide=wide),
        Field("CLAIM", lambda volume: volume.metadata.pvc_name, wide=wide),
        empty="no volumes: k8s-cli volumes create NAME SIZE makes one",
    )
    return [shown]


def volume_blocks(volume: VolumeStatus) -> Sequence[Block]:
    return [
        Facts(
            [
                ("volume", volume.volume_id),
                ("name", volume.name),
                ("size", volume.size),
                ("status", _phase(volume)),
                ("storage class", volume.storage_class or ""),
                ("access modes", ",".join(volume.access_modes)),
                ("user", volume.username),
                ("claim", volume.metadata.pvc_name),
                ("namespace", volume.metadata.namespace),
                ("created", _shown(volume.created_at)),
            ]
        )
    ]


def _phase(volume: VolumeStatus) -> Cell:
    return Cell(volume.status, _PHASES.get(volume.status, Tone.WARN))


def volume_files_blocks(files: VolumeFiles) -> Sequence[Block]:
    return [text("\n".join(files.lines))]


def history_blocks(request: ListRequest, history: HistoryResponse) -> Sequence[Block]:
    shown = table(
        history.tasks,
        Field("TASK ID", lambda task: task.task_id),
        Field("NAME", lambda task: task.name),
        Field("STATUS", lambda task: Cell(task.status, _ENDS.get(task.status, Tone.PLAIN))),
        Field("SUBMITTED", lambda task: _shown(task.created_at)),
        Field("ENDED", lambda task: _shown(task.ended_at)),
        Field("NODES", lambda task: str(task.num_nodes), number=True),
        Field("GPUS", lambda task: str(task.gpus), number=True),
        Field("REASON", lambda task: task.reason),
        Field("USER", lambda task: task.username, wide=not request.all_users),
        empty="no task has been submitted yet",
    )
    return [shown]


def queue_blocks(request: ListRequest, listed: TaskListResponse, now: datetime) -> Sequence[Block]:
    shown = table(
        enumerate(listed.tasks, 1),
        Field("#", lambda row: str(row[0]), number=True),
        Field("TASK ID", lambda row: row[1].task_id),
        Field("NAME", lambda row: row[1].name),
        Field("STATUS", lambda row: _state(row[1].status)),
        Field("NODES", lambda row: str(row[1].metadata.num_nodes), number=True),
        Field("SINCE", lambda row: age(_elapsed(row[1].created_at, now))),
        Field("USER", lambda row: row[1].username, wide=not request.all_users),
        empty="no pending or running tasks",
    )
    return [shown]


def endpoint_blocks(response: EndpointResponse) -> Sequence[Block]:
    shown = table(
        response.endpoints,
        Field("PORT", lambda endpoint: str(endpoint.port), number=True),
        Field("ADDRESS", lambda endpoint: endpoint.address),
        Field("NAME", lambda endpoint: endpoint.name),
        Field("OUTSIDE", lambda endpoint: endpoint.external or "-"),
        empty="no ports",
    )
    return [shown]


def live_blocks(view: TaskView, now: datetime) -> Sequence[Block]:
    """A task and its nodes at one moment."""
    task = view.task

    def elapsed(node: NodeView) -> str:
        if not node.started_at:
            return "-"
        return age(_elapsed(node.started_at, _moment(node.ended_at) or now))

    nodes = table(
        view.nodes,
        Field("NODE", lambda node: f"node-{node.index}"),
        Field("PHASE", lambda node: node.phase),
        Field("GPU", lambda node: str(node.gpus), number=True),
        Field("ELAPSED", elapsed),
        Field("MACHINE", lambda node: node.machine or "-"),
        Field("REASON", lambda node: node.reason),
        empty="no nodes",
    )
    status = f"{task.status} {age(_elapsed(task.created_at, now))}"
    return [Facts([("task", f"{task.task_id} {task.name}"), ("status", status)]), nodes]


def live_line(view: TaskView) -> str:
    """`abc12345 running: node-0 Running, node-1 Pending (no node takes it: ...)`"""
    nodes = ", ".join(
        f"node-{node.index} {node.phase}" + (f" ({one_line(node.reason)})" if node.reason else "")
        for node in view.nodes
    )
    return f"{view.task.task_id} {view.task.status.value}: {nodes}"


def _shown(text: str) -> str:
    """A time of the API, which is UTC without a zone, as tables show times."""
    return f"{text[:19].replace('T', ' ')} UTC" if text else ""


def _moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _elapsed(since: str, now: datetime) -> float:
    began = _moment(since)
    return 0.0 if began is None else max((now - began).total_seconds(), 0.0)
