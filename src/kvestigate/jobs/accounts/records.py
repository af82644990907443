"""The records of tasks, which are kept after the tasks are deleted. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from kvestigate.jobs.accounts.quotas import Usage
from kvestigate.jobs.answers import HistoryEntry, State, TaskStatus, stamp

MOST = 400
"""Records of one user; with the longest names and reasons well below what a ConfigMap holds."""

RESERVED_SECONDS = 120.0
"""Time for a submission to create its jobs; after that its record reserves nothing."""

_LONGEST_NAME = 100
_LONGEST_REASON = 500


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task in its user's book. Field names are short: hundreds share one object."""

    name: str
    at: str
    """When it was submitted."""
    user: str
    """The readable name."""
    nodes: int = 1
    cpus: int = 0
    """Billionths of a CPU, of all nodes together."""
    gpus: int = 0
    end: str = ""
    """When the launcher noticed the end."""
    state: str = ""
    """`completed`, `failed` or `stopped`; empty while it may still run."""
    why: str = ""


_DECODER = msgspec.json.Decoder(Record)


def new_record(name: str, at: str, user: str, nodes: int, wanted: Usage) -> Record:
    return Record(name[:_LONGEST_NAME], at, user, nodes, wanted.cpus, wanted.gpus)


def encode(record: Record) -> str:
    return msgspec.json.encode(record).decode()


def decode_all(data: Mapping[str, str]) -> dict[str, Record]:
    """The records of a book; values that are no records are skipped."""
    records = {}
    for task_id, text in data.items():
        try:
            records[task_id] = _DECODER.decode(text)
        except msgspec.DecodeError:
            continue
    return records


def ended(record: Record, state: str, at: str, why: str = "") -> Record:
    return msgspec.structs.replace(record, state=state, end=at, why=why[:_LONGEST_REASON])


def finished(task: TaskStatus) -> bool:
    """Whether all nodes have ended; the others may still run after one failed."""
    over = task.metadata.succeeded_nodes + task.metadata.failed_nodes
    return task.status in (State.COMPLETED, State.FAILED) and over >= len(task.metadata.node_jobs)


def reserved(records: Mapping[str, Record], live: Iterable[str], now: datetime) -> Usage:
    """The usage of recent submissions whose jobs do not exist yet."""
    existing = set(live)
    oldest = stamp(now - timedelta(seconds=RESERVED_SECONDS))
    usage = Usage()
    for task_id, record in records.items():
        if task_id not in existing and not record.state and record.at >= oldest:
            usage += Usage(1, record.cpus, record.gpus)
    return usage


def surplus(records: Mapping[str, Record]) -> list[str]:
    """The oldest ended tasks beyond the size of a book."""
    over = sorted((record.at, task_id) for task_id, record in records.items() if record.state)
    return [task_id for _, task_id in over[: max(len(records) - MOST, 0)]]


def entries(records: Mapping[str, Record], live: Iterable[str]) -> list[HistoryEntry]:
    """All tasks of a book; `unknown` for one that was deleted before its end was recorded."""
    existing = set(live)
    return [
        HistoryEntry(
            task_id=task_id,
            name=record.name,
            status=record.state or ("active" if task_id in existing else "unknown"),
            created_at=record.at,
            ended_at=record.end,
            username=record.user,
            num_nodes=record.nodes,
            gpus=record.gpus,
            reason=record.why,
        )
        for task_id, record in records.items()
    ]
