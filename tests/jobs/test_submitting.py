"""Queues of Kueue, and how long what is made may stay."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import InputError
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.running.submitting import QUEUES
from kvestigate.jobs.tasks.limits import with_limits
from kvestigate.jobs.users import User
from kvestigate.kube import builtins
from tests.jobs.tasks_of import jobs_of

DEFINITIONS = builtins.resource("customresourcedefinitions")
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
KUEUE = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "localqueues.kueue.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://example.com"},
    },
    "spec": {
        "group": "kueue.x-k8s.io",
        "names": {"plural": "localqueues", "kind": "LocalQueue", "singular": "localqueue"},
        "scope": "Namespaced",
        "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": SCHEMA}],
    },
}


async def queue(api: Api, name: str) -> None:
    body = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": {"name": name},
    }
    await api.create(QUEUES, body, namespace="default")


async def test_a_queue_decides_when_a_job_starts(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task: dict[str, Any] = with_limits({"run": "x"}, queue="ml")
    with pytest.raises(InputError, match="Kueue is not installed"):
        await jane.submit(task)
    await api.create(DEFINITIONS, KUEUE)
    await queue(api, "vision")
    with pytest.raises(InputError, match="no LocalQueue 'ml'") as caught:
        await jane.submit(task)
    assert caught.value.hint == "there are: vision"
    await queue(api, "ml")
    (job,) = await jobs_of(api, (await jane.submit(task)).task_id)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "ml"
    assert job["spec"]["suspend"] is True
    assert "schedulingGates" not in job["spec"]["template"]["spec"]


async def test_a_queue_admits_all_nodes_or_none(api: Api) -> None:
    await api.create(DEFINITIONS, KUEUE)
    await queue(api, "ml")
    task = with_limits({"run": "x", "num_nodes": 3}, queue="ml")
    task_id = (await InProcess(api, User("jane")).submit(task)).task_id
    jobs = await jobs_of(api, task_id)
    assert len(jobs) == 3
    for job in jobs:
        # A job that named a queue would be admitted without the others.
        assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"]
        assert not job["spec"].get("suspend")
        template = job["spec"]["template"]
        labels, notes = template["metadata"]["labels"], template["metadata"]["annotations"]
        assert labels["kueue.x-k8s.io/queue-name"] == "ml"
        assert labels["kueue.x-k8s.io/pod-group-name"] == f"task-{task_id}"
        assert notes["kueue.x-k8s.io/pod-group-total-count"] == "3"
        assert notes["kueue.x-k8s.io/retriable-in-group"] == "false"
        assert template["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]


async def test_nothing_stays_for_ever(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task = with_limits({"run": "x"}, deadline=60, ttl=30)
    (job,) = await jobs_of(api, (await jane.submit(task)).task_id)
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["ttlSecondsAfterFinished"]) == (
        60,
        30,
    )
    assert not job["spec"].get("suspend")
