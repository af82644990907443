"""Start a task again: its jobs are replaced by new ones, with the same choice or the next.

A job that has failed stays failed, and the pods of one that waits cannot be changed; so new jobs
take the place of the old ones, under their names. Services and Secrets of the task belong to its
first job and would be removed with it: they are taken from the old job and given to the new one.

Several servers and commands may want it at once. Who writes the annotation `skypilot-restarting`
first does it; if they do not finish, another one may after a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kvestigate.aio.backoff import Backoff
from kvestigate.client.api import PODS, Api, Propagation
from kvestigate.client.call import Selection
from kvestigate.errors import AlreadyExists, Conflict, NotFound
from kvestigate.jobs.files import staging
from kvestigate.jobs.running.gang import Restart, count_of
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import (
    Manifest,
    again,
    later_choices,
    with_choice,
    written_choices,
)
from kvestigate.jobs.tasks.script import FILES
from kvestigate.jobs.tasks.statuses import TaskJob, node_index
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.pods import Pod

JOBS = builtins.resource("jobs.batch")
SERVICES = builtins.resource("services")
SECRETS = staging.SECRETS
_TAKES = timedelta(seconds=60)
_ATTEMPTS = 12


async def restart(api: Api, jobs: Sequence[TaskJob], wanted: Restart, now: datetime) -> bool:
    """Replace the jobs of a task, unless somebody else does it. False if that is impossible."""
    first, *others = sorted(jobs, key=node_index)
    try:
        old = [await _whole(api, job) for job in (first, *others)]
    except NotFound:
        return True  # it is being replaced already
    if _streamed(old[0]):
        return False
    if not await _claim(api, old[0], now):
        return True
    new = _manifests(old, wanted)
    owned = await _owned(api, first)
    await _give(api, owned, first.metadata.uid, None)
    for job in (first, *others):
        await _remove(api, job)
    made = await _created(api, new[0])
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": made.metadata.name,
        "uid": made.metadata.uid,
    }
    await _give(api, owned, first.metadata.uid, reference)
    for manifest in new[1:]:
        await _created(api, manifest)
    return True


def _manifests(old: Sequence[Manifest], wanted: Restart) -> list[Manifest]:
    notes = old[0]["metadata"]["annotations"]
    story = notes.get(labels.STORY, "").splitlines()
    restarts = count_of(notes, labels.RESTARTS) + 1
    new = [again(job, restarts) for job in old]
    later = list(later_choices(notes))
    reason = wanted.story
    if wanted.next_choice:
        choice, *later = later
        new = [with_choice(job, choice) for job in new]
        reason = f"{reason}; {choice.name} is tried instead"
    errors = count_of(notes, labels.ERRORS) + wanted.error
    for index, job in enumerate(new):
        written = job["metadata"]["annotations"]
        written[labels.ERRORS] = str(errors)
        if index == 0:
            written[labels.STORY] = "\n".join([*story, reason])
            written.pop(labels.LATER, None)
            written.update({labels.LATER: written_choices(later)} if later else {})
    return new


def _streamed(job: Manifest) -> bool:
    """Whether the task's files were sent to its pods, which nobody can do again."""
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    mounted = {
        mount["name"] for mount in container.get("volumeMounts", ()) if mount["mountPath"] == FILES
    }
    return any(
        volume["name"] in mounted and "emptyDir" in volume for volume in pod.get("volumes", ())
    )


async def _whole(api: Api, job: TaskJob) -> Manifest:
    whole = await api.get(JOBS, job.metadata.name, namespace=api.namespace)
    if whole["metadata"]["uid"] != job.metadata.uid:
        raise NotFound(f"job {job.metadata.name} was replaced")
    return whole


async def _claim(api: Api, first: Manifest, now: datetime) -> bool:
    """Whether the restart is ours to do."""
    since = first["metadata"]["annotations"].get(labels.RESTARTING, "")
    try:
        begun = datetime.fromisoformat(since)
    except ValueError:
        begun = None
    if begun is not None and begun.tzinfo is not None and now - begun < _TAKES:
        return False
    change = {
        "metadata": {
            "resourceVersion": first["metadata"]["resourceVersion"],
            "annotations": {labels.RESTARTING: now.isoformat()},
        }
    }
    try:
        await api.patch(
            JOBS, first["metadata"]["name"], change, namespace=api.namespace, type=bytes
        )
    except (Conflict, NotFound):
        return False
    return True


async def _owned(api: Api, first: TaskJob) -> list[tuple[Resource, PartialObject]]:
    """What would be removed with the task's first job, but for its pods."""
    meta = first.metadata
    selection = Selection(api.namespace, labels=f"{labels.TASK_ID}={meta.labels[labels.TASK_ID]}")
    found: list[tuple[Resource, PartialObject]] = []
    for resource in (SERVICES, SECRETS):
        listed = await api.list(resource, selection, type=PartialObject)
        found += [(resource, item) for item in listed.items]
    pieces = await staging.held(api, meta.labels.get(labels.OWNER, ""))
    found += [(SECRETS, piece) for piece in pieces]
    return [
        (resource, item)
        for resource, item in found
        if any(reference.uid == meta.uid for reference in item.metadata.owner_references)
    ]


async def _give(
    api: Api,
    owned: Iterable[tuple[Resource, PartialObject]],
    old_owner: str,
    reference: dict[str, Any] | None,
) -> None:
    for resource, item in owned:
        references = [
            msgspec.to_builtins(other)
            for other in item.metadata.owner_references
            if other.uid != old_owner
        ]
        change = {"metadata": {"ownerReferences": references + ([reference] if reference else [])}}
        await api.patch(resource, item.metadata.name, change, namespace=api.namespace, type=bytes)


async def _remove(api: Api, job: TaskJob) -> None:
    """The job and its pods, at once: nothing of it may be found by the new ones."""
    try:
        await api.delete(
            JOBS,
            job.metadata.name,
            namespace=api.namespace,
            propagation=Propagation.BACKGROUND,
            uid=job.metadata.uid,
            type=bytes,
        )
    except NotFound:
        pass
    selection = Selection(api.namespace, labels=f"job-name={job.metadata.name}")
    for pod in (await api.list(PODS, selection, type=Pod)).items:
        try:
            await api.delete(PODS, pod.metadata.name, namespace=api.namespace, type=bytes)
        except NotFound:
            pass


async def _created(api: Api, manifest: Manifest) -> PartialObject:
    """The new job; the old one of that name may take a moment to be gone."""
    backoff = Backoff(initial=0.1, cap=5.0)
    for _ in range(_ATTEMPTS):
        try:
            return await api.create(JOBS, manifest, namespace=api.namespace, type=PartialObject)
        except AlreadyExists:
            await asyncio.sleep(backoff.next())
    return await api.create(JOBS, manifest, namespace=api.namespace, type=PartialObject)
