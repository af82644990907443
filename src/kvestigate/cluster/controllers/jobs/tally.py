"""The ends of a Job's pods: which are counted, and as what. Pure.

A pod's end must be counted exactly once though the counter and the pod are different objects.
So a pod keeps a finalizer until its uid stands in `uncountedTerminatedPods`; once the finalizer
is gone the uid moves into the counter. A crash between any two of these steps loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvestigate.cluster.controllers.jobs import indexes, pod_failures
from kvestigate.cluster.controllers.jobs.indexes import index_of
from kvestigate.cluster.controllers.objects import Job, UncountedPods
from kvestigate.kube.views.pods import Pod

FINALIZER = "batch.kubernetes.io/job-tracking"


@dataclass(frozen=True, slots=True)
class Tally:
    """The ends of pods, noted and counted."""

    succeeded: int
    failed: int
    uncounted: UncountedPods
    counted: tuple[Pod, ...]
    completed_indexes: frozenset[int]
    failed_indexes: frozenset[int]
    fatal: str = ""
    """Why the policy ends the whole Job."""

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.uncounted.succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.uncounted.failed)


def holds(pod: Pod) -> bool:
    """Whether the end of the pod is still to be counted."""
    return FINALIZER in pod.metadata.finalizers


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def tally(job: Job, pods: Sequence[Pod], *, ending: bool) -> Tally:
    """The counts after the ends that are new; `ending` where the Job itself has a verdict."""
    status = job.status
    noted = status.uncounted_terminated_pods or UncountedPods()
    held = {pod.metadata.uid: pod for pod in pods if holds(pod)}
    succeeded = [uid for uid in noted.succeeded if uid in held]
    failed = [uid for uid in noted.failed if uid in held]
    completed = indexes.parse(status.completed_indexes)
    lost = indexes.parse(status.failed_indexes)
    known = {*succeeded, *failed}
    only_failed = replaces_only_failed(job) and not ending
    fatal = ""
    counted = [held[uid] for uid in known]
    for pod in held.values():
        if pod.metadata.uid in known:
            continue
        index = index_of(pod)
        if pod.status.phase == "Succeeded":
            counted.append(pod)
            if not is_indexed(job):
                succeeded.append(pod.metadata.uid)
            elif index is not None and index < (job.spec.completions or 0):
                completed |= {index}
        elif pod_failures.is_failed(pod, only_failed=only_failed):
            verdict = pod_failures.judge(job.spec.pod_failure_policy, pod)
            if verdict.action == pod_failures.FAIL_JOB:
                fatal = fatal or verdict.message
            if _index_is_lost(job, pod, verdict):
                lost |= {index} if index is not None else set()
            elif _awaits_replacement(job, pod, pods, completed | lost, ending):
                continue
            counted.append(pod)
            if verdict.action != pod_failures.IGNORE:
                failed.append(pod.metadata.uid)
    return Tally(
        succeeded=len(completed)
        if is_indexed(job)
        else status.succeeded + len(noted.succeeded) - _still(noted.succeeded, held),
        failed=status.failed + len(noted.failed) - _still(noted.failed, held),
        uncounted=UncountedPods(tuple(succeeded), tuple(failed)),
        counted=tuple(counted),
        completed_indexes=completed,
        failed_indexes=lost - completed,
        fatal=fatal,
    )


def _still(noted: Iterable[str], held: dict[str, Pod]) -> int:
    return sum(uid in held for uid in noted)


def replaces_only_failed(job: Job) -> bool:
    """Whether a pod that is still leaving keeps its place."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def _index_is_lost(job: Job, pod: Pod, verdict: pod_failures.Verdict) -> bool:
    limit = job.spec.backoff_limit_per_index
    if limit is None:
        return False
    if verdict.action == pod_failures.FAIL_INDEX:
        return True
    return verdict.action != pod_failures.IGNORE and pod_failures.failure_count(pod) >= limit


def _awaits_replacement(
    job: Job, pod: Pod, pods: Sequence[Pod], settled: frozenset[int], ending: bool
) -> bool:
    """Whether the pod must stay because it holds the failure count of its index."""
    if job.spec.backoff_limit_per_index is None or ending:
        return False
    index = index_of(pod)
    if index in settled:
        return False
    return not any(
        other is not pod
        and index_of(other) == index
        and pod_failures.failure_count(other) > pod_failures.failure_count(pod)
        for other in pods
    )
