"""What a task's trouble is called, from what clusters really say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.jobs.answers import Explanation, State
from kvestigate.jobs.running.explain import Evidence, explain
from kvestigate.jobs.tasks.statuses import TaskJob, task_status
from kvestigate.kube.views.core import Event
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim

JOB = {"metadata": {"name": "j", "labels": {"task-id": "abc12345", "node-idx": "0"}}}


def explained(
    pod: dict[str, Any] | None = None,
    job: dict[str, Any] | None = None,
    claim: dict[str, Any] | None = None,
    event: dict[str, Any] | None = None,
) -> Explanation:
    jobs = [msgspec.convert(JOB | {"status": job or {}}, TaskJob)]
    pods = [] if pod is None else [(0, msgspec.convert({"status": pod}, Pod))]
    claims = [] if claim is None else [msgspec.convert(claim, PersistentVolumeClaim)]
    events = [] if event is None else [msgspec.convert(event, Event)]
    return explain(Evidence(task_status(jobs), jobs, pods, claims, events))


def unscheduled(message: str) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def container(**state: Any) -> dict[str, Any]:
    return {"phase": "Pending", "containerStatuses": [{"name": "task", "state": state}]}


@pytest.mark.parametrize(
    ("pod", "cause", "advice"),
    [
        (
            unscheduled("0/2 nodes are available: 2 Insufficient nvidia.com/gpu."),
            "node-0: no node fits: all 2 nodes have too few free nvidia.com/gpu",
            "request less nvidia.com/gpu, or wait until other tasks end",
        ),
        (
            unscheduled(
                "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
            ),
            "node-0: no node fits: the only node does not match the pod's node selector or node "
            "affinity",
            "no node matches resources.accelerators",
        ),
        (
            unscheduled("pod has unbound immediate PersistentVolumeClaims"),
            "node-0: a PersistentVolumeClaim that the pod mounts is not bound to a volume yet",
            "a volume is not ready",
        ),
        (
            container(waiting={"reason": "ImagePullBackOff", "message": "no such image"}),
            "node-0: ImagePullBackOff: no such image",
            "check resources.image_id",
        ),
        (
            container(terminated={"exitCode": 137, "reason": "OOMKilled"}),
            "node-0: the container used more memory",
            "request more resources.memory",
        ),
        (
            container(terminated={"exitCode": 127, "reason": "Error"}),
            "node-0: the container ended with exit code 127",
            "a command was not found",
        ),
        (
            container(terminated={"exitCode": 3, "reason": "Error", "message": "m"}),
            "node-0: the container ended with exit code 3: m",
            "read the log: `k8s-cli jobs logs abc12345`",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on disk"},
            "node-0: Evicted: low on disk",
            "submit the task again",
        ),
    ],
)
def test_a_pods_trouble_is_named_with_a_way_out(
    pod: dict[str, Any], cause: str, advice: str
) -> None:
    found = explained(pod)
    assert found.causes[0].startswith(cause)
    assert found.advice[0].startswith(advice)


@pytest.mark.parametrize(
    ("resource", "asked", "largest", "advice"),
    [
        ("nvidia.com/gpu", "9", {"nvidia.com/gpu": 8}, "no node has more than 8"),
        ("cpu", "5", {"cpu": 4000}, "no node has more than 4"),
        ("memory", "3Gi", {"memory": 2 << 30}, "no node has more than 2.0 GiB"),
        ("nvidia.com/gpu", "8", {"nvidia.com/gpu": 8}, "wait until other tasks end"),
        ("nvidia.com/gpu", "9", {}, "wait until other tasks end"),
    ],
)
def test_nobody_waits_for_what_no_node_has(
    resource: str, asked: str, largest: dict[str, int], advice: str
) -> None:
    asks = {"name": "task", "resources": {"requests": {resource: asked}}}
    status = unscheduled(f"0/1 nodes are available: 1 Insufficient {resource}.")
    pod = msgspec.convert({"spec": {"containers": [asks]}, "status": status}, Pod)
    jobs = [msgspec.convert(JOB, TaskJob)]
    found = explain(Evidence(task_status(jobs), jobs, [(0, pod)], [], [], largest))
    assert advice in found.advice[0]


def test_a_refused_pod_is_known_from_the_jobs_events() -> None:
    event = {"involvedObject": {"name": "j"}, "reason": "FailedCreate", "message": "exceeded quota"}
    assert explained(event=event).causes == ("node-0: the pod was refused: exceeded quota",)


def test_a_volume_that_is_not_bound_is_named() -> None:
    claim = {"metadata": {"name": "data"}, "status": {"phase": "Pending"}}
    event = {"involvedObject": {"name": "data"}, "reason": "X", "message": "no class"}
    found = explained({"phase": "Pending"}, claim=claim, event=event)
    assert found.causes == ("volume data is Pending: no class",)


@pytest.mark.parametrize(
    ("job", "state", "cause"),
    [
        ({"ready": 1}, State.RUNNING, "the task runs"),
        (
            {"conditions": [{"type": "Complete", "status": "True"}]},
            State.COMPLETED,
            "the task completed",
        ),
        ({}, State.PENDING, "the task is about to start"),
    ],
)
def test_nothing_wrong_is_said_too(job: dict[str, Any], state: State, cause: str) -> None:
    found = explained({"phase": "Running"}, job)
    assert found.status is state
    assert found.causes[0].startswith(cause)
