"""The labels and annotations by which tasks and volumes are found again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kvestigate.jobs.users import User, label_value

TASK: Final = "skypilot-task"
TASK_ID: Final = "task-id"
TASK_NAME: Final = "task-name"
NODE_INDEX: Final = "node-idx"
VOLUME: Final = "skypilot-volume"
VOLUME_ID: Final = "volume-id"
VOLUME_NAME: Final = "volume-name"
USERNAME: Final = "username"
OWNER: Final = "skypilot-owner"
"""The digest of the user's exact name: what isolation is decided by."""

SHARED: Final = "skypilot-shared"
"""Label of claims without an owner: `true` lets tasks of all users mount the claim."""
EXACT_NAME: Final = "skypilot-name"
"""Annotation: the name of the task or volume as it was written."""
NUM_NODES: Final = "skypilot-num-nodes"
"""Annotation: how many jobs the task has, to notice that some are gone."""
START_WITHIN: Final = "skypilot-start-within"
"""Annotation: seconds until all nodes have to run."""
REASON: Final = "skypilot-reason"
"""Annotation: why the task was ended."""
LATER: Final = "skypilot-later"
"""Annotation of the first job: the choices to try when this one does not start, as JSON."""
STORY: Final = "skypilot-story"
"""Annotation of the first job: what was tried before, and why it was given up; a line each."""
RESTARTS: Final = "skypilot-restarts"
"""Annotation: how often the task was started again."""
ERRORS: Final = "skypilot-errors"
"""Annotation: how many of these restarts were for an exit code of its program."""
RECOVERS: Final = "skypilot-recovers"
"""Annotation: how many restarts for exit codes the task file allows."""
RESTARTING: Final = "skypilot-restarting"
"""Annotation of the first job: since when somebody replaces the task's jobs."""
HISTORY: Final = "skypilot-history"
PIECE: Final = "skypilot-piece"
"""Label of what holds a piece of uploaded files."""
QUEUE: Final = "kueue.x-k8s.io/queue-name"
QUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""Label of pods that Kueue admits together or not at all."""
QUEUE_GROUP_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
QUEUE_RETRIES: Final = "kueue.x-k8s.io/retriable-in-group"
QUEUE_GATE: Final = "kueue.x-k8s.io/admission"
"""The scheduling gate that Kueue removes when it admits a pod."""
SUBMITTED: Final = "skypilot-submitted-at"
"""Annotation: when, to the microsecond; the API server knows only seconds, which are no order."""

_RESERVED: Final = frozenset(
    (
        TASK_ID,
        TASK_NAME,
        NODE_INDEX,
        VOLUME_ID,
        VOLUME_NAME,
        USERNAME,
        QUEUE,
        QUEUE_GROUP,
        "job-name",
        "controller-uid",
    )
)
_RESERVED_PREFIXES: Final = ("skypilot-", "kvestigate.dev/", "batch.kubernetes.io/")


def is_reserved(key: str) -> bool:
    """Whether only kvestigate or the Job controller may write this label."""
    return key in _RESERVED or key.startswith(_RESERVED_PREFIXES)


def of_user(user: User) -> dict[str, str]:
    return {USERNAME: user.label, OWNER: user.digest}


def of_task(user: User, task_id: str, name: str) -> dict[str, str]:
    return {TASK: "true", TASK_ID: task_id, TASK_NAME: label_value(name), **of_user(user)}


def of_volume(user: User, volume_id: str, name: str) -> dict[str, str]:
    return {VOLUME: "true", VOLUME_ID: volume_id, VOLUME_NAME: label_value(name), **of_user(user)}


def labelled(kind: str, user: User | None, **exact: str) -> str:
    """The selector for things of `kind` that `belongs` must sort: users may share a label."""
    parts = {kind: "true"} | ({USERNAME: user.label} if user is not None else {}) | exact
    return ",".join(f"{key}={value}" for key, value in parts.items())


def belongs(own: Mapping[str, str], user: User | None) -> bool:
    """Whether what has these labels is the user's; without a user, everybody's counts.

    The digest decides. What another tool made has none, and is known by the user's label alone.
    """
    if user is None:
        return True
    owner = own.get(OWNER)
    return owner == user.digest if owner is not None else own.get(USERNAME) == user.label


def selecting(kind: str, user: User | None, **exact: str) -> str:
    """The selector for things of `kind` that kvestigate made, of one user or of all.

    The values are ours or checked by the caller: nothing that a user typed may end up in here.
    """
    parts = {kind: "true"} | ({OWNER: user.digest} if user is not None else {}) | exact
    return ",".join(f"{key}={value}" for key, value in parts.items())
