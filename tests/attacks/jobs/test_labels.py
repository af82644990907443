"""The labels of a task do not make its pods endpoints of another Service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import Invalid
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.kube import builtins
from tests.jobs.tasks_of import jobs_of

SERVICES = builtins.resource("services")


async def service(api: Api, selector: Mapping[str, str], namespace: str = "default") -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "payments"},
        "spec": {"selector": dict(selector), "ports": [{"port": 80}]},
    }
    await api.create(SERVICES, body, namespace=namespace)


def labelled(labels: Mapping[str, str], **more: Any) -> dict[str, Any]:
    return {"run": "x", "name": "t", "resources": {"labels": dict(labels), **more}}


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ({"app": "pay"}, {"app": "pay"}),
        ({"app": "pay"}, {"app": "pay", "team": "research"}),
        ({"app": "pay", "tier": "db"}, {"app": "pay", "tier": "db"}),
        ({"app": ""}, {"app": ""}),
        ({"app.kubernetes.io/name": "pay"}, {"app.kubernetes.io/name": "pay"}),
        # The rest of the selector is met by labels that the launcher writes.
        ({"app": "pay", "skypilot-task": "true"}, {"app": "pay"}),
        ({"app": "pay", "node-idx": "1"}, {"app": "pay"}),
        ({"app": "pay", "task-name": "t"}, {"app": "pay"}),
    ],
)
async def test_a_task_does_not_join_a_service(
    api: Api, mallory: Remote, root: Remote, selector: dict[str, str], labels: dict[str, str]
) -> None:
    await service(api, selector)
    for launcher in (mallory, root):
        for ask in (launcher.submit, launcher.plan):
            with pytest.raises(Invalid, match=r"resources\.labels\.app.* Service payments"):
                await ask({**labelled(labels, ports=[80]), "num_nodes": 2})
    assert (await root.list_tasks(all_users=True)).tasks == ()


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ({}, {"app": "pay"}),
        ({"app": "pay"}, {"app": "other"}),
        ({"app": "pay"}, {"team": "pay"}),
        ({"app": "pay", "tier": "db"}, {"app": "pay"}),
        # Whoever wrote this Service means tasks of this name.
        ({"task-name": "t", "node-idx": "0"}, {"app": "pay"}),
    ],
)
async def test_labels_that_no_service_selects_are_kept(
    api: Api, mallory: Remote, selector: dict[str, str], labels: dict[str, str]
) -> None:
    await service(api, selector)
    task_id = (await mallory.submit(labelled(labels, ports=[80]))).task_id
    (job,) = await jobs_of(api, task_id)
    assert labels.items() <= job["spec"]["template"]["metadata"]["labels"].items()
    # The Services of the task itself do not stand in the way of the next.
    await mallory.submit(labelled(labels, ports=[80]))


@pytest.mark.parametrize(
    "key",
    [
        "skypilot-anything",
        "skypilot-shared",
        "task-id",
        "node-idx",
        "username",
        "kvestigate.dev/app",
        "kueue.x-k8s.io/queue-name",
        "job-name",
        "controller-uid",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
    ],
)
async def test_labels_that_others_rely_on_are_reserved(mallory: Remote, key: str) -> None:
    with pytest.raises(Invalid, match=f"resources.labels.{key}: this label is reserved"):
        await mallory.submit(labelled({key: "x"}))
