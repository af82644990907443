"""The launcher as a program uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvestigate import jobs
from kvestigate.client.api import Api
from kvestigate.errors import Conflict, UsageError
from tests.jobs.tasks_of import ended, jobs_of, pod_of


async def test_there_is_a_function_for_each_command(api: Api, url: str, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("hello")
    steps: list[tuple[int, int]] = []
    async with jobs.launcher("jane", url=url) as mine:
        made = await jobs.create_volume(mine, "data", "1Gi")
        assert (await jobs.volume_status(mine, "data")).volume_id == made.volume_id
        assert len((await jobs.list_volumes(mine)).volumes) == 1
        task = {
            "run": "cat words",
            "workdir": ".",
            "volumes": {"/data": "data"},
            "resources": {"ports": 8080},
        }
        submitted = await jobs.submit(
            mine, task, files=tmp_path, progress=lambda done, total: steps.append((done, total))
        )
        assert steps == [(0, 1), (1, 1)]
        await jobs.submit(mine, task, files=tmp_path, progress=lambda *step: steps.append(step))
        assert steps[2:] == [(1, 1)], "nothing is sent twice"
        task_id = submitted.task_id
        assert len((await jobs.list(mine)).tasks) == 2
        assert (await jobs.queue(mine)).tasks[0].task_id == task_id
        assert (await jobs.status(mine, task_id)).status == "pending"
        assert (await jobs.why(mine, task_id)).causes
        (port,) = (await jobs.endpoint(mine, task_id)).endpoints
        assert port.name == f"task-{task_id}-ports.default.svc:8080"
        assert [line async for line in jobs.logs(mine, task_id, follow=False)] == []
        (job,) = await jobs_of(api, task_id)
        await pod_of(api, job, ended(0))
        with pytest.raises(Conflict, match="is Succeeded, not running"):
            await jobs.exec(mine, task_id, "id")
        await jobs.cancel(mine, task_id)
        assert (await jobs.stop_all(mine)).count == 1
        assert len((await jobs.history(mine)).tasks) == 2
        await jobs.delete_volume(mine, "data")


async def test_somewhere_has_to_be_named() -> None:
    with pytest.raises(UsageError, match="neither a server nor a cluster"):
        async with jobs.launcher("jane"):
            pass


def test_what_is_listed_is_there() -> None:
    assert all(callable(getattr(jobs, name)) for name in jobs.SDK)
    with pytest.raises(AttributeError):
        _ = jobs.absent
