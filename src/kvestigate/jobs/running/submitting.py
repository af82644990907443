"""From a task file to the objects that run it, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kvestigate.client.api import Api, Propagation
from kvestigate.client.call import Selection
from kvestigate.errors import Forbidden, InputError, NotFound
from kvestigate.jobs.accounts import book
from kvestigate.jobs.accounts.quotas import Quotas, demand
from kvestigate.jobs.accounts.records import new_record
from kvestigate.jobs.answers import stamp
from kvestigate.jobs.files import staging
from kvestigate.jobs.running.reaching import SERVICES
from kvestigate.jobs.tasks.compile import Submission, compile_companions, compile_jobs
from kvestigate.jobs.tasks.ids import new_id
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.pieces import Files
from kvestigate.jobs.tasks.placement import needs_nodes, place
from kvestigate.jobs.users import Caller
from kvestigate.jobs.volumes import claims
from kvestigate.kube import builtins
from kvestigate.kube.resources import Resource
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.meta import PartialObject
from kvestigate.kube.views.network import Service

JOBS = builtins.resource("jobs.batch")
QUEUES = Resource("kueue.x-k8s.io", "v1beta1", "localqueues", "LocalQueue")
_COMPANIONS = {"Service": SERVICES, "Secret": builtins.resource("secrets")}


async def prepare(
    api: Api,
    caller: Caller,
    document: Mapping[str, Any],
    files: Files | None,
    *,
    strict: bool = False,
) -> Submission:
    """Decide everything about a submission, from the document and the state of the cluster.

    `strict`: a field that would be ignored is an error.
    """
    task = parse_task(document)
    if task.uploads and files is None:
        raise InputError(
            f"{task.uploads[0].where}: the files have not been uploaded",
            hint="`k8s-cli jobs submit` uploads them; over HTTP, PUT their pieces to /files first",
        )
    placement = place(task, await _nodes(api) if needs_nodes(task) else None)
    ignored = (*task.ignored, *placement.ignored)
    if strict and ignored:
        raise InputError(
            f"ignored here: {'; '.join(ignored)}",
            hint="remove these fields, or submit without --strict",
        )
    if task.limits.queue:
        await _check_queue(api, task.limits.queue)
    claim_names = await claims.resolve(api, caller, set(task.volumes.values()))
    submission = Submission(
        task,
        new_id(),
        caller.user,
        api.namespace,
        placement,
        claim_names,
        files if task.uploads else None,
        stamp(datetime.now(UTC)),
    )
    await _check_labels(api, submission)
    return submission


async def _nodes(api: Api) -> list[Node] | None:
    try:
        return list((await api.list(builtins.resource("nodes"), type=Node)).items)
    except Forbidden:
        return None


async def start(api: Api, submission: Submission, quotas: Quotas | None) -> None:
    """Create all objects of the task, or none. Forbidden if the task exceeds the user's quota."""
    user, task_id = submission.user, submission.task_id
    quota = quotas.of(user) if quotas is not None else None
    record = new_record(
        submission.name,
        submission.submitted,
        user.label,
        submission.task.num_nodes,
        demand(submission.task, submission.placement.resources),
    )
    entered = True
    try:
        await book.enter(api, user, task_id, record, quota)
    except Forbidden:
        if quota is not None:
            raise
        entered = False  # who may make jobs and no ConfigMaps has no history
    try:
        await _create(api, submission)
    except BaseException:
        if entered:
            await book.forget(api, user, task_id)
        raise


async def delete_job(api: Api, name: str) -> None:
    try:
        await api.delete(JOBS, name, propagation=Propagation.BACKGROUND, type=bytes)
    except NotFound:
        pass


async def _create(api: Api, submission: Submission) -> None:
    """The first job owns all else, so that what is stopped or fails half-way leaves nothing.

    It is suspended until all is there: nothing starts that could not be finished.
    """
    first, *others = compile_jobs(submission)
    companions = compile_companions(submission)
    held = bool(companions or submission.files) and "suspend" not in first["spec"]
    if held:
        first["spec"]["suspend"] = True
    owner = await api.create(JOBS, first, type=PartialObject)
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
    }
    made = [owner.metadata.name]
    try:
        for companion in companions:
            companion["metadata"]["ownerReferences"] = [reference]
            await api.create(_COMPANIONS[companion["kind"]], companion, type=PartialObject)
        if submission.files is not None:
            await staging.adopt(api, submission.user, submission.files, reference)
        for job in others:
            made.append(job["metadata"]["name"])
            await api.create(JOBS, job, type=PartialObject)
        if held:
            await api.patch(JOBS, made[0], {"spec": {"suspend": False}}, type=PartialObject)
    except BaseException:
        for name in made:
            await delete_job(api, name)
        raise


async def _check_labels(api: Api, submission: Submission) -> None:
    """InputError if a label in the task file makes its pods endpoints of an existing Service."""
    written = submission.placement.resources.labels
    if not written:
        return
    services = await api.list(SERVICES, Selection(api.namespace), type=Service)
    for job in compile_jobs(submission):
        pod_labels = job["spec"]["template"]["metadata"]["labels"]
        for service in services.items:
            selector = service.spec.selector
            selected = selector.keys() & written.keys()
            if selected and selector.items() <= pod_labels.items():
                raise InputError(
                    f"{written[min(selected)]!r} would make the task's pods endpoints of "
                    f"Service {service.metadata.name}",
                    where=f"resources.labels.{min(selected)}",
                    hint="choose another value; `resources.ports` gives a task its own Service",
                )


async def _check_queue(api: Api, queue: str) -> None:
    where = "config.kubernetes.kueue.local_queue_name"
    try:
        queues = await api.list(QUEUES, Selection(api.namespace), type=PartialObject)
    except NotFound:
        raise InputError(
            f"{queue!r}: Kueue is not installed in this cluster",
            where=where,
            hint="leave --queue out, or install Kueue",
        ) from None
    names = sorted(item.metadata.name for item in queues.items)
    if queue not in names:
        raise InputError(
            f"namespace {api.namespace} has no LocalQueue {queue!r}",
            where=where,
            hint=f"there are: {', '.join(names)}" if names else "the namespace has no LocalQueue",
        )
