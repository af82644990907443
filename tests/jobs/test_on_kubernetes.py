"""The launcher on the real API server, which refuses what is not an object of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import NotFound
from kvestigate.jobs.answers import State
from kvestigate.jobs.files.archive import packed
from kvestigate.jobs.files.uploading import put_pieces
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.tasks.model import Upload
from kvestigate.jobs.users import User
from tests.real.session import connected
from tests.upstream.cluster import UpstreamCluster

TASK: dict[str, Any] = {
    "name": "Training Job",
    "num_nodes": 2,
    "workdir": ".",
    "resources": {"cpus": "4+", "memory": 16, "accelerators": 1, "ports": [8080], "disk_size": 10},
    "volumes": {"/data": "data"},
    "envs": {"EPOCHS": 100},
    "secrets": {"TOKEN": "hush"},
    "run": "echo $(date) $$",
}


@pytest.fixture
async def api(kubernetes: UpstreamCluster, namespace: str) -> AsyncIterator[Api]:
    async with connected(kubernetes.admin_kubeconfig()) as api:
        api.namespace = namespace
        yield api


async def test_a_task_with_everything_is_taken_listed_and_stopped(api: Api, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("pass\n")
    jane = InProcess(api, User("jane@example.com"))
    volume = (await jane.create_volume("data", "10Gi")).volume_id
    with packed([Upload(".", "~/sky_workdir", "workdir")], tmp_path) as archive:
        await put_pieces(jane, archive, lambda done, total: None)
        task_id = (await jane.submit(TASK, archive.files.digest, archive.files.pieces)).task_id
        assert (await jane.missing_pieces(archive.files.pieces)).missing == ()
    (task,) = (await jane.list_tasks(all_users=False)).tasks
    assert (task.task_id, task.name, task.status) == (task_id, "Training Job", State.PENDING)
    assert task.metadata.node_jobs == (
        f"training-job-{task_id}-node-0",
        f"training-job-{task_id}-node-1",
    )
    assert (await jane.why(task_id)).causes
    for other in ("jane-example.com", "joe"):
        with pytest.raises(NotFound):
            await InProcess(api, User(other)).stop(task_id)
    await jane.stop(task_id)
    assert (await jane.list_tasks(all_users=True)).tasks == ()
    await jane.delete_volume(volume)
