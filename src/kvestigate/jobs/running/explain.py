"""Why a task waits or has failed, in plain words, and what would make it run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kvestigate.jobs.answers import Explanation, State, TaskStatus
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.statuses import TaskJob, node_index
from kvestigate.kube.requests import CPU, requests_of
from kvestigate.kube.unschedulable import in_plain_words
from kvestigate.kube.views.core import Event
from kvestigate.kube.views.pods import ContainerState, Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim
from kvestigate.render.human import cores, size


@dataclass(frozen=True, slots=True)
class Evidence:
    """The objects and events of one task."""

    task: TaskStatus
    jobs: Sequence[TaskJob]
    pods: Sequence[tuple[int, Pod]]
    """With the index of the node."""
    claims: Sequence[PersistentVolumeClaim]
    events: Sequence[Event]
    largest: Mapping[str, int] = field(default_factory=dict)
    """The most that any node offers of a resource; empty where we do not know."""


_INSUFFICIENT = re.compile(r"Insufficient (\S+?)[,.]?(?:\s|$)")

# What schedulers say about nodes, and what would change it.
_SCHEDULING: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"didn't match Pod's node affinity|didn't match .*node selector"),
        "no node matches resources.accelerators, instance_type or use_spot",
    ),
    (
        re.compile(r"untolerated taint"),
        "the remaining nodes have taints that the task does not tolerate",
    ),
    (
        re.compile(r"PersistentVolume|persistentvolumeclaim"),
        "a volume is not ready or is on another node: `k8s-cli volumes list --details`",
    ),
    (
        re.compile(r"unschedulable"),
        "a node is cordoned: `kubectl uncordon NODE` makes it schedulable again",
    ),
)
_UNKNOWN: Mapping[str, int] = {}
_WAITING = {
    "ErrImagePull": "check resources.image_id: the node cannot pull that image",
    "ImagePullBackOff": "check resources.image_id: the node cannot pull that image",
    "InvalidImageName": "check resources.image_id: it is not a valid image name",
    "CreateContainerConfigError": "a Secret or ConfigMap of the container does not exist",
    "UnexpectedAdmissionError": "the node refused the pod: submit the task again",
}
_EXITS = {
    126: "the command cannot be executed: is it a program, and may it be run?",
    127: "a command was not found: is it in the image, or installed by `setup`?",
    137: "the program was killed (SIGKILL): request more resources.memory",
    143: "the program was stopped (SIGTERM)",
}


_DEADLINE = "DeadlineExceeded"
"""A deadline in the past is how the launcher ends a pod and keeps its log."""


def explain(evidence: Evidence) -> Explanation:
    causes: list[str] = []
    advice: list[str] = []
    seen = set()
    ended = {node_index(job) for job in evidence.jobs if labels.REASON in job.metadata.annotations}
    for index, pod in evidence.pods:
        seen.add(index)
        if index in ended and pod.status.reason == _DEADLINE:
            continue  # the launcher ended it with the others, and why is told below
        for cause, way_out in pod_causes(pod, evidence.largest):
            causes.append(f"node-{index}: {cause}")
            advice.append(way_out)
    for job in evidence.jobs:
        if (index := node_index(job)) not in seen:
            causes += [f"node-{index}: {cause}" for cause in _podless(job, evidence.events)]
    if evidence.task.status is State.FAILED:
        causes = _noted(evidence.jobs) + causes
    for claim in evidence.claims:
        if claim.status.phase != "Bound":
            causes.append(_claim(claim, evidence.events))
    causes = _story(evidence.jobs) + causes
    if not causes:
        causes = [_nothing_wrong(evidence.task.status)]
    task = evidence.task
    given = (way_out.replace("TASK", task.task_id) for way_out in advice if way_out)
    return Explanation(task.task_id, task.status, tuple(causes), tuple(dict.fromkeys(given)))


def _story(jobs: Sequence[TaskJob]) -> list[str]:
    """What was tried before, in order."""
    lines = [job.metadata.annotations.get(labels.STORY, "") for job in jobs]
    return [f"before: {line}" for text in lines for line in text.splitlines()]


def _noted(jobs: Iterable[TaskJob]) -> list[str]:
    """The reason that the launcher recorded when it ended the task."""
    noted = {job.metadata.annotations.get(labels.REASON, "") for job in jobs} - {""}
    return [f"the task was ended: {reason}" for reason in sorted(noted)]


def pod_causes(pod: Pod, largest: Mapping[str, int] = _UNKNOWN) -> Iterable[tuple[str, str]]:
    """The causes why a pod does not run or has ended, each with advice or an empty text."""
    status = pod.status
    if status.phase == "Failed" and status.reason:
        yield f"{status.reason}: {status.message}", "submit the task again"
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            reason = in_plain_words(condition.reason, condition.message)
            yield reason, _scheduling(condition.message, pod, largest)
    for container in status.container_statuses:
        yield from _container(container.state)


def _container(state: ContainerState) -> Iterable[tuple[str, str]]:
    if state.waiting is not None and state.waiting.reason not in ("", "ContainerCreating"):
        waiting = state.waiting
        yield f"{waiting.reason}: {waiting.message}".rstrip(": "), _WAITING.get(waiting.reason, "")
    ended = state.terminated
    if ended is not None and ended.exit_code:
        message = f": {ended.message}" if ended.message else ""
        if ended.reason == "OOMKilled":
            yield "the container used more memory than its limit", "request more resources.memory"
        else:
            reason = f" ({ended.reason})" if ended.reason not in ("", "Error") else ""
            yield (
                f"the container ended with exit code {ended.exit_code}{reason}{message}",
                _EXITS.get(ended.exit_code, "read the log: `k8s-cli jobs logs TASK`"),
            )


def _scheduling(message: str, pod: Pod, largest: Mapping[str, int]) -> str:
    if short := _INSUFFICIENT.search(message):
        resource = short.group(1)
        most = largest.get(resource)
        if most is not None and requests_of(pod.spec).get(resource, 0) > most:
            return f"request less {resource}: no node has more than {_amount(resource, most)}"
        others = "`k8s-cli jobs list --all-users`"
        return f"request less {resource}, or wait until other tasks end: {others}"
    for pattern, way_out in _SCHEDULING:
        if pattern.search(message):
            return way_out
    return ""


def _amount(resource: str, amount: int) -> str:
    if resource == CPU:
        return cores(amount / 1000)
    return size(amount) if amount >= 1 << 20 else str(amount)


def _podless(job: TaskJob, events: Sequence[Event]) -> Iterable[str]:
    """The causes for a job without a pod: a refused pod, or the end before the pod was removed."""
    for condition in job.status.conditions:
        if condition.type == "Failed" and condition.status == "True":
            if labels.REASON in job.metadata.annotations:
                return  # it was ended with the others, and why has been said
            yield f"{condition.reason}: {condition.message}"
            return
    refused = _newest_message(job.metadata.name, events, "FailedCreate")
    if refused:
        yield f"the pod was refused: {refused}"
    elif not job.status.succeeded:
        yield "the pod has not been created yet"


def _claim(claim: PersistentVolumeClaim, events: Sequence[Event]) -> str:
    message = _newest_message(claim.metadata.name, events)
    phase = claim.status.phase or "Pending"
    return f"volume {claim.metadata.name} is {phase}" + (f": {message}" if message else "")


def _newest_message(name: str, events: Sequence[Event], reason: str = "") -> str:
    """The newest message of an event about the object."""
    messages = [
        event.message
        for event in events
        if event.involved_object.name == name and (not reason or event.reason == reason)
    ]
    return messages[-1] if messages else ""


def _nothing_wrong(state: State) -> str:
    return {
        State.PENDING: "the task is about to start",
        State.RUNNING: "the task runs; no problems found",
        State.COMPLETED: "the task completed; no problems found",
        State.FAILED: "the task failed; the reason is unknown, since its pods were removed",
    }[state]
