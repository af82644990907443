"""Tables of tasks and volumes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kvestigate.jobs.answers import (
    EndpointResponse,
    Explanation,
    HistoryResponse,
    State,
    TaskListResponse,
    TaskStatus,
    TaskView,
    VolumeFiles,
    VolumeListResponse,
    VolumeStatus,
)
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, one_line, text
from kvestigate.render.human import age

_TONES = {
    State.PENDING: Tone.WARN,
    State.RUNNING: Tone.GOOD,
    State.FAILED: Tone.BAD,
    State.COMPLETED: Tone.DIM,
}

_ENDS = {"failed": Tone.BAD, "completed": Tone.GOOD, "stopped": Tone.WARN, "unknown": Tone.DIM}


def task_list_blocks(
    listed: TaskListResponse, *, details: bool, all_users: bool = False
) -> Sequence[Block]:
    columns = [
        Column("TASK ID"),
        Column("NAME"),
        Column("STATUS"),
        Column("CREATED"),
        Column("USER", wide=not (details or all_users)),
        Column("NAMESPACE", wide=not details),
        Column("JOBS", wide=not details),
    ]
    rows: list[list[str | Cell]] = [
        [
            task.task_id,
            task.name,
            Cell(task.status.value, _TONES[task.status]),
            _shown(task.created_at),
            task.username,
            task.metadata.namespace,
            ", ".join(task.metadata.node_jobs),
        ]
        for task in listed.tasks
    ]
    return [Table(columns, rows, empty="no tasks: k8s-cli jobs submit TASK.yaml starts one")]


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
                ("status", Cell(task.status.value, _TONES[task.status])),
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
    state = Cell(explanation.status.value, _TONES[explanation.status])
    return [
        Facts([("task", explanation.task_id), ("status", state)]),
        *(text(cause) for cause in explanation.causes),
        *(text(f"try: {way_out}", Tone.STRONG) for way_out in explanation.advice),
    ]


def volume_list_blocks(
    listed: VolumeListResponse, *, details: bool, all_users: bool = False
) -> Sequence[Block]:
    columns = [
        Column("VOLUME ID"),
        Column("NAME"),
        Column("SIZE"),
        Column("STATUS"),
        Column("CREATED"),
        Column("USER", wide=not (details or all_users)),
        Column("STORAGE CLASS", wide=not details),
        Column("ACCESS MODES", wide=not details),
        Column("CLAIM", wide=not details),
    ]
    rows: list[list[str | Cell]] = [
        [
            volume.volume_id,
            volume.name,
            volume.size,
            _phase(volume),
            _shown(volume.created_at),
            volume.username,
            volume.storage_class or "",
            ",".join(volume.access_modes),
            volume.metadata.pvc_name,
        ]
        for volume in listed.volumes
    ]
    return [Table(columns, rows, empty="no volumes: k8s-cli volumes create NAME SIZE makes one")]


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
    tones = {"Bound": Tone.GOOD, "Lost": Tone.BAD}
    return Cell(volume.status, tones.get(volume.status, Tone.WARN))


def volume_files_blocks(files: VolumeFiles) -> Sequence[Block]:
    return [text("\n".join(files.lines))]


def history_blocks(history: HistoryResponse, *, all_users: bool = False) -> Sequence[Block]:
    columns = [
        Column("TASK ID"),
        Column("NAME"),
        Column("STATUS"),
        Column("SUBMITTED"),
        Column("ENDED"),
        Column("NODES", number=True),
        Column("GPUS", number=True),
        Column("REASON"),
        Column("USER", wide=not all_users),
    ]
    rows: list[list[str | Cell]] = [
        [
            task.task_id,
            task.name,
            Cell(task.status, _ENDS.get(task.status, Tone.PLAIN)),
            _shown(task.created_at),
            _shown(task.ended_at),
            str(task.num_nodes),
            str(task.gpus),
            task.reason,
            task.username,
        ]
        for task in history.tasks
    ]
    return [Table(columns, rows, empty="no task has been submitted yet")]


def queue_blocks(
    listed: TaskListResponse, now: datetime, *, all_users: bool = False
) -> Sequence[Block]:
    columns = [
        Column("#", number=True),
        Column("TASK ID"),
        Column("NAME"),
        Column("STATUS"),
        Column("NODES", number=True),
        Column("SINCE"),
        Column("USER", wide=not all_users),
    ]
    rows: list[list[str | Cell]] = [
        [
            str(place),
            task.task_id,
            task.name,
            Cell(task.status.value, _TONES[task.status]),
            str(task.metadata.num_nodes),
            age(_elapsed(task.created_at, now)),
            task.username,
        ]
        for place, task in enumerate(listed.tasks, 1)
    ]
    return [Table(columns, rows, empty="no pending or running tasks")]


def endpoint_blocks(response: EndpointResponse) -> Sequence[Block]:
    columns = [Column("PORT", number=True), Column("ADDRESS"), Column("NAME"), Column("OUTSIDE")]
    rows: list[list[str | Cell]] = [
        [str(endpoint.port), endpoint.address, endpoint.name, endpoint.external or "-"]
        for endpoint in response.endpoints
    ]
    return [Table(columns, rows, empty="no ports")]


def live_blocks(view: TaskView, now: datetime) -> Sequence[Block]:
    """A task and its nodes at one moment."""
    task = view.task
    columns = [
        Column("NODE"),
        Column("PHASE"),
        Column("GPU", number=True),
        Column("ELAPSED"),
        Column("MACHINE"),
        Column("REASON"),
    ]
    rows: list[list[str | Cell]] = [
        [
            f"node-{node.index}",
            node.phase,
            str(node.gpus),
            age(_elapsed(node.started_at, _moment(node.ended_at) or now))
            if node.started_at
            else "-",
            node.machine or "-",
            node.reason,
        ]
        for node in view.nodes
    ]
    elapsed = age(_elapsed(task.created_at, now))
    return [
        Facts([("task", f"{task.task_id} {task.name}"), ("status", f"{task.status} {elapsed}")]),
        Table(columns, rows, empty="no nodes"),
    ]


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
