"""Claims that the launcher did not make belong to nobody who is not told so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import Invalid
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.users import User
from kvestigate.kube import builtins
from tests.jobs.tasks_of import jobs_of

CLAIMS = builtins.resource("persistentvolumeclaims")
TASK = {"run": "cat /data/*", "volumes": {"/data": "postgres"}}
OF_ALICE = {"skypilot-owner": User("alice").digest}


async def claim(api: Api, labels: Mapping[str, str]) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "postgres", "labels": dict(labels)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await api.create(CLAIMS, body, namespace="default")


async def mounted(api: Api, launcher: Remote) -> str:
    (job,) = await jobs_of(api, (await launcher.submit(TASK)).task_id)
    volumes = job["spec"]["template"]["spec"]["volumes"]
    (claim,) = [it["persistentVolumeClaim"] for it in volumes if "persistentVolumeClaim" in it]
    return str(claim["claimName"])


async def refusal(launcher: Remote) -> tuple[str, str | None]:
    with pytest.raises(Invalid) as caught:
        await launcher.submit(TASK)
    return caught.value.message, caught.value.hint


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"app": "postgres"},
        {"skypilot-shared": "false"},
        {"skypilot-shared": ""},
        {"skypilot-owner": ""},
        OF_ALICE,
        {**OF_ALICE, "skypilot-shared": "true"},
    ],
)
async def test_a_user_does_not_mount_it(
    api: Api, mallory: Remote, labels: Mapping[str, str]
) -> None:
    absent = await refusal(mallory)
    await claim(api, labels)
    # The answer does not even say that the claim exists.
    assert await refusal(mallory) == absent
    assert "skypilot-shared=true" in (absent[1] or "")
    with pytest.raises(Invalid):
        await mallory.plan(TASK)
    assert (await mallory.list_tasks(all_users=False)).tasks == ()


async def test_a_user_mounts_what_is_shared(api: Api, mallory: Remote) -> None:
    await claim(api, {"skypilot-shared": "true"})
    assert await mounted(api, mallory) == "postgres"


async def test_an_administrator_mounts_it_but_not_what_another_user_owns(
    api: Api, root: Remote
) -> None:
    await claim(api, {})
    assert await mounted(api, root) == "postgres"
    await api.patch(CLAIMS, "postgres", {"metadata": {"labels": OF_ALICE}}, namespace="default")
    await refusal(root)
