"""What tasks and volumes look like to people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kvestigate.jobs.answers import (
    State,
    TaskListResponse,
    TaskStatus,
    VolumeListResponse,
    VolumeStatus,
)
from kvestigate.jobs.explain import Explanation
from kvestigate.render.blocks import Block, Cell, Column, Facts, Table, Tone, text

_TONES = {
    State.PENDING: Tone.WARN,
    State.RUNNING: Tone.GOOD,
    State.FAILED: Tone.BAD,
    State.COMPLETED: Tone.DIM,
}


def task_list_blocks(listed: TaskListResponse, *, details: bool) -> Sequence[Block]:
    columns = [
        Column("TASK ID"),
        Column("NAME"),
        Column("STATUS"),
        Column("CREATED"),
        Column("USER", wide=not details),
        Column("NAMESPACE", wide=not details),
        Column("JOBS", wide=not details),
    ]
    rows: list[list[str | Cell]] = [
        [
            task.task_id,
            task.name,
            Cell(task.status.value, _TONES[task.status]),
            task.created_at,
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
                ("created", task.created_at),
                ("updated", task.updated_at),
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


def volume_list_blocks(listed: VolumeListResponse, *, details: bool) -> Sequence[Block]:
    columns = [
        Column("VOLUME ID"),
        Column("NAME"),
        Column("SIZE"),
        Column("STATUS"),
        Column("CREATED"),
        Column("USER", wide=not details),
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
            volume.created_at,
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
                ("created", volume.created_at),
            ]
        )
    ]


def _phase(volume: VolumeStatus) -> Cell:
    tones = {"Bound": Tone.GOOD, "Lost": Tone.BAD}
    return Cell(volume.status, tones.get(volume.status, Tone.WARN))
