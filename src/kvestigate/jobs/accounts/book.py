"""A user's book: a ConfigMap with a line for each of their tasks, which outlives the tasks.

It is also what makes quotas hold with several servers: a submission writes its line before it
makes anything, and only over the version of the book that it has judged by.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from kvestigate.client.api import Api
from kvestigate.client.call import Selection
from kvestigate.errors import AlreadyExists, Conflict, Forbidden, NotFound, TooManyRequests
from kvestigate.jobs.accounts import records
from kvestigate.jobs.accounts.quotas import Quota, Quotas, Usage, check, read_quotas, total
from kvestigate.jobs.accounts.records import Record
from kvestigate.jobs.answers import HistoryEntry
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.statuses import TaskJob, node_ended
from kvestigate.jobs.users import User
from kvestigate.kube import builtins, quantities
from kvestigate.kube.views.meta import Metadata, View
from kvestigate.kube.views.workloads import Job
from kvestigate.kube.yaml_documents import load
from kvestigate.kube.yaml_scalars import Dialect

CONFIG_MAPS = builtins.resource("configmaps")
JOBS = builtins.resource("jobs.batch")
QUOTAS_NAME = "k8s-cli-quotas"
QUOTAS_KEY = "quotas.yaml"
_GPU = "nvidia.com/gpu"
_ATTEMPTS = 30
_PAUSE = 0.02


class Book(View, frozen=True):
    """The ConfigMap that holds a user's book."""

    metadata: Metadata = Metadata()
    data: dict[str, str] = msgspec.field(default_factory=dict)


def book_name(owner: str) -> str:
    """`owner` is the digest of the user's name."""
    return f"k8s-cli-history-{owner}"


async def cluster_quotas(api: Api) -> Quotas | None:
    """The quotas in the namespace's ConfigMap `k8s-cli-quotas`; None without one."""
    try:
        config_map = await api.get(CONFIG_MAPS, QUOTAS_NAME, namespace=api.namespace, type=Book)
    except (NotFound, Forbidden):
        return None
    written = config_map.data.get(QUOTAS_KEY, "")
    documents = load(written, f"ConfigMap {QUOTAS_NAME}", dialect=Dialect.PYTHON)
    return read_quotas(documents[0].value, QUOTAS_KEY) if documents else None


async def enter(api: Api, user: User, task_id: str, record: Record, quota: Quota | None) -> None:
    """Write the task's line; Forbidden if the task exceeds the user's quota."""
    if quota is None:
        await _write(api, user.digest, user, {task_id: records.encode(record)})
        return
    wanted = Usage(1, record.cpus, record.gpus)
    for attempt in range(_ATTEMPTS):
        book = await _read(api, user.digest)
        live = await _live(api, user)
        now = datetime.now(UTC)
        held = records.reserved(records.decode_all(book.data), live, now)
        check(quota, total(live.values()) + held, wanted)
        body = _body(user.digest, user, {**book.data, task_id: records.encode(record)})
        try:
            if book.metadata.resource_version:
                body["metadata"]["resourceVersion"] = book.metadata.resource_version
                await api.replace(CONFIG_MAPS, body["metadata"]["name"], body, type=Book)
            else:
                await api.create(CONFIG_MAPS, body, type=Book)
        except (Conflict, AlreadyExists):
            # Another submission of this user came first: judge again by what it left.
            await asyncio.sleep(random.uniform(0, _PAUSE * (attempt + 1)))
            continue
        return
    raise TooManyRequests(
        "too many submissions of this user at the same time", hint="submit again in a few seconds"
    )


async def forget(api: Api, user: User, task_id: str) -> None:
    """Remove the line of a task that was not created."""
    await _write(api, user.digest, user, {task_id: None})


async def settle(api: Api, owner: str, change: Callable[[str, Record], Record | None]) -> None:
    """Write the end of tasks: `change` returns the new record of each task that had not ended."""
    book = await _read(api, owner)
    known = records.decode_all(book.data)
    changed: dict[str, str | None] = dict.fromkeys(records.surplus(known))
    for task_id, record in known.items():
        if not record.state and (new := change(task_id, record)) is not None:
            changed[task_id] = records.encode(new)
    if changed:
        await _write(api, owner, None, changed)


async def history(api: Api, user: User | None) -> list[HistoryEntry]:
    """The tasks in the books of one user, or of all, newest first."""
    selector = labels.selecting(labels.HISTORY, user)
    books = await api.list(CONFIG_MAPS, Selection(api.namespace, labels=selector), type=Book)
    jobs = Selection(api.namespace, labels=labels.selecting(labels.TASK, user))
    existing = {
        job.metadata.labels.get(labels.TASK_ID, "")
        for job in (await api.list(JOBS, jobs, type=TaskJob)).items
    }
    entries = [
        entry
        for book in books.items
        for entry in records.entries(records.decode_all(book.data), existing)
    ]
    return sorted(entries, key=lambda entry: (entry.created_at, entry.task_id), reverse=True)


async def _read(api: Api, owner: str) -> Book:
    try:
        return await api.get(CONFIG_MAPS, book_name(owner), namespace=api.namespace, type=Book)
    except NotFound:
        return Book()


async def _write(api: Api, owner: str, user: User | None, lines: Mapping[str, str | None]) -> None:
    name = book_name(owner)
    for _ in range(2):
        try:
            await api.patch(CONFIG_MAPS, name, {"data": lines}, namespace=api.namespace, type=Book)
            return
        except NotFound:
            given = {key: value for key, value in lines.items() if value is not None}
            if user is None or not given:
                return
        try:
            body = _body(owner, user, given)
            await api.create(CONFIG_MAPS, body, namespace=api.namespace, type=Book)
            return
        except AlreadyExists:
            continue


def _body(owner: str, user: User, data: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": book_name(owner),
            "labels": {labels.HISTORY: "true", **labels.of_user(user)},
        },
        "data": dict(data),
    }


async def _live(api: Api, user: User) -> dict[str, Usage]:
    """The requests of each existing task of the user; zero for a task that has ended."""
    selection = Selection(api.namespace, labels=labels.selecting(labels.TASK, user))
    jobs = await api.list(JOBS, selection, type=Job)
    usages: dict[str, Usage] = {}
    for job in jobs.items:
        task_id = job.metadata.labels.get(labels.TASK_ID, "")
        usage = usages.setdefault(task_id, Usage())
        if not node_ended(job):
            requested = _requested(job)
            usages[task_id] = Usage(1, usage.cpus + requested.cpus, usage.gpus + requested.gpus)
    return usages


def _requested(job: Job) -> Usage:
    cpus = gpus = 0
    for container in job.spec.template.spec.containers:
        wanted: Iterable[tuple[str, str]] = container.resources.requests.items()
        for name, amount in (*wanted, *container.resources.limits.items()):
            if name == _GPU:
                gpus = max(gpus, int(amount))
            elif name == "cpu":
                cpus = max(cpus, quantities.parse(amount).nanos)
    return Usage(0, cpus, gpus)
