"""Jobs: run pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from kvestigate import errors
from kvestigate.client.api import PatchType, Propagation
from kvestigate.client.cache import Change, Key
from kvestigate.client.recorder import WARNING
from kvestigate.cluster.controllers import conditions, owners
from kvestigate.cluster.controllers.context import Context, slow_start
from kvestigate.cluster.controllers.jobs import indexes, pod_failures
from kvestigate.cluster.controllers.jobs.rules import SUSPENDED, Creation, decide
from kvestigate.cluster.controllers.jobs.tally import FINALIZER, holds, is_indexed
from kvestigate.cluster.controllers.jobs.verdict import COMPLETE, FAILED, is_finished_job
from kvestigate.cluster.controllers.kinds import JOBS, PODS
from kvestigate.cluster.controllers.objects import Job, JobStatus
from kvestigate.cluster.controllers.reconciler import PodOwner, Reconciler
from kvestigate.cluster.controllers.templates import pod_from
from kvestigate.cluster.controllers.times import seconds
from kvestigate.kube.views.pods import Pod

_OURS = "kubernetes.io/job-controller"
_HOST_MAX = 63


class JobController(PodOwner[Job]):
    def __init__(self, context: Context) -> None:
        super().__init__(context, JOBS)

    async def reconcile(self, key: Key) -> float | None:
        if self._objects.get(key) is None:
            await self._let_go(key)
        return await super().reconcile(key)

    async def _reconcile(self, job: Job) -> float | None:
        if job.spec.managed_by not in ("", _OURS):
            return None
        pods = await self._claim(job, finalizers=[FINALIZER])
        decision = decide(job, pods, self._context.now())
        if await self._put_status(job, decision.status):
            self._announce(job, decision.status)
        for pod in decision.counted:
            await self._untrack(pod)
        await self._delete(job, decision.delete, counting=decision.failing)
        create = partial(self._create_pod, job)
        await slow_start([partial(create, pod_of(job, creation)) for creation in decision.create])
        return decision.pause

    async def _let_go(self, key: Key) -> None:
        """Remove the finalizers of pods whose Job is gone: their end is no longer counted."""
        for pod in self._pods.find(owners.NAMESPACE, key.namespace):
            owner = owners.controller_of(pod)
            if owner and owner.kind == JOBS.resource.kind and owner.name == key.name:
                await self._untrack(pod)

    async def _untrack(self, pod: Pod) -> None:
        if not holds(pod):
            return
        gone = {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}
        patch = {"metadata": {"uid": pod.metadata.uid, **gone}}
        try:
            await self._context.patch(PODS, pod, patch, type=PatchType.STRATEGIC)
        except (errors.NotFound, errors.Conflict):
            pass  # it is gone, or another pod has its name now

    async def _delete(self, job: Job, pods: Sequence[Pod], *, counting: bool) -> None:
        async def delete(pod: Pod) -> None:
            if not counting:  # ended by us, so no failure of its own
                await self._untrack(pod)
            await self._delete_pod(job, pod)

        await slow_start([partial(delete, pod) for pod in pods])

    def _announce(self, job: Job, status: JobStatus) -> None:
        for outcome, reason, message in (
            (COMPLETE, "Completed", "Job completed"),
            (SUSPENDED, "Suspended", "Job suspended"),
        ):
            if _newly(job, status, outcome):
                self._tell(job, reason, message)
        if _newly(job, status, FAILED):
            failed = conditions.find(status.conditions, FAILED)
            if failed is not None:
                self._tell(job, failed.reason, failed.message, WARNING)
        if conditions.is_true(job.status.conditions, SUSPENDED) and not conditions.is_true(
            status.conditions, SUSPENDED
        ):
            self._tell(job, "Resumed", "Job resumed")


def _newly(job: Job, status: JobStatus, type: str) -> bool:
    before = conditions.is_true(job.status.conditions, type)
    return not before and conditions.is_true(status.conditions, type)


def pod_of(job: Job, creation: Creation) -> dict[str, Any]:
    """The pod to be made for a Job, or for one of its indexes."""
    pod = pod_from(job.spec.template, JOBS, job)
    metadata = pod["metadata"]
    metadata["finalizers"] = [*metadata.get("finalizers", ()), FINALIZER]
    if is_indexed(job) and creation.index is not None:
        number = str(creation.index)
        name = job.metadata.name
        metadata["annotations"][indexes.INDEX] = number
        metadata["labels"][indexes.INDEX] = number
        metadata["generateName"] = f"{name[: _HOST_MAX - len(number) - 7]}-{number}-"
        pod["spec"] = _with_index(pod["spec"])
        pod["spec"].setdefault("hostname", f"{name}-{number}"[:_HOST_MAX])
        if creation.failures is not None:
            metadata["annotations"][pod_failures.FAILURE_COUNT] = str(creation.failures)
    return pod


def _with_index(spec: dict[str, Any]) -> dict[str, Any]:
    """Every container learns its index from the environment."""
    path = f"metadata.annotations['{indexes.INDEX}']"
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}}

    def with_variable(container: dict[str, Any]) -> dict[str, Any]:
        env = container.get("env") or []
        if any(entry.get("name") == variable["name"] for entry in env):
            return container
        return {**container, "env": [*env, variable]}

    changed = {
        name: [with_variable(container) for container in spec[name]]
        for name in ("initContainers", "containers")
        if spec.get(name)
    }
    return {**spec, **changed}


def time_left(job: Job, now: float) -> float | None:
    """Seconds until the Job is to go; None if it has not finished or may stay."""
    limit = job.spec.ttl_seconds_after_finished
    if limit is None or job.metadata.deletion_timestamp is not None:
        return None
    for outcome in (COMPLETE, FAILED):
        done = conditions.find(job.status.conditions, outcome)
        if done is not None and done.status == "True":
            return max(0.0, seconds(done.last_transition_time) + limit - now)
    return None


def _finished(change: Change[Job]) -> tuple[Key, ...]:
    return (change.key,) if change.new is not None and is_finished_job(change.new) else ()


class TtlController(Reconciler[Job]):
    """Deletes finished Jobs with `ttlSecondsAfterFinished` when their time is over."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, JOBS, _finished)

    async def _reconcile(self, job: Job) -> float | None:
        left = time_left(job, self._context.now())
        if left is None or left > 0:
            return left
        await self._context.delete(JOBS, job, propagation=Propagation.FOREGROUND)
        return None
