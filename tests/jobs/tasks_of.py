"""What a cluster would do to the jobs and pods of a task, done by hand."""

from __future__ import annotations

from typing import Any

from kvestigate.client.api import PODS, Api
from kvestigate.client.call import Selection
from kvestigate.kube import builtins

JOBS = builtins.resource("jobs.batch")
BEGAN = "2026-01-01T00:00:00Z"


async def finish(api: Api, job: str, kind: str, at: str = BEGAN) -> None:
    """Let a job end: `Complete` or `Failed`."""
    met = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
    conditions = [
        {"type": each, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}
        for each in (met, kind)
    ]
    status: dict[str, Any] = {"startTime": at, "conditions": conditions}
    status |= {"active": None, "ready": None}
    if kind == "Complete":
        status |= {"completionTime": at, "succeeded": 1}
    await api.patch(JOBS, job, {"status": status}, namespace="default", subresource="status")


async def begin(api: Api, job: str) -> None:
    """Let a job have a pod that runs."""
    status = {"active": 1, "ready": 1, "startTime": BEGAN}
    await api.patch(JOBS, job, {"status": status}, namespace="default", subresource="status")


async def jobs_of(api: Api, task_id: str) -> list[dict[str, Any]]:
    selection = Selection("default", labels=f"task-id={task_id}")
    return sorted((await api.list(JOBS, selection)).items, key=lambda job: job["metadata"]["name"])


async def pod_of(api: Api, job: dict[str, Any], status: dict[str, Any]) -> None:
    """Make the pod of a job, with a status."""
    meta = job["metadata"]
    template = job["spec"]["template"]
    labels = {**template["metadata"]["labels"], "job-name": meta["name"]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{meta['name']}-x", "labels": labels},
        "spec": {**template["spec"], "nodeName": "machine"},
    }
    await api.create(PODS, body, namespace="default")
    await api.patch(
        PODS, f"{meta['name']}-x", {"status": status}, namespace="default", subresource="status"
    )


def running(at: str) -> dict[str, Any]:
    state = {"running": {"startedAt": at}}
    return _with("Running", state)


def ended(code: int, at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "startedAt": at, "finishedAt": at}}
    return _with("Failed" if code else "Succeeded", state)


def _with(phase: str, state: dict[str, Any]) -> dict[str, Any]:
    container = {
        "name": "task",
        "image": "i",
        "imageID": "",
        "ready": phase == "Running",
        "restartCount": 0,
        "state": state,
    }
    return {"phase": phase, "containerStatuses": [container]}
