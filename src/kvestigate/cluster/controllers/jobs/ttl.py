"""Finished Jobs with `ttlSecondsAfterFinished`: delete them when their time is over."""

from __future__ import annotations

from kvestigate.client.api import Propagation
from kvestigate.client.cache import Key
from kvestigate.cluster.controllers import conditions
from kvestigate.cluster.controllers.context import Context
from kvestigate.cluster.controllers.jobs.job import finished_keys
from kvestigate.cluster.controllers.jobs.verdict import COMPLETE, FAILED
from kvestigate.cluster.controllers.kinds import JOBS
from kvestigate.cluster.controllers.objects import Job
from kvestigate.cluster.controllers.times import seconds


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


class TtlController:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._jobs = context.watch(JOBS, finished_keys)

    async def reconcile(self, key: Key) -> float | None:
        job = self._jobs.get(key)
        left = time_left(job, self._context.now()) if job else None
        if job is None or left is None or left > 0:
            return left
        await self._context.delete(JOBS, job, propagation=Propagation.FOREGROUND)
        return None
