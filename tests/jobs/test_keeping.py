"""All nodes of a task or none, and what is written down when it has ended."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kvestigate.aio.supervisor import Supervisor
from kvestigate.client.api import PODS, Api, Propagation
from kvestigate.client.call import Selection
from kvestigate.jobs.answers import HistoryEntry, State
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.interface import Launcher
from kvestigate.jobs.running.gang import judge, next_look, partial
from kvestigate.jobs.running.keeping import Keeper, keep
from kvestigate.jobs.tasks import labels
from kvestigate.jobs.tasks.compile import Submission, compile_jobs
from kvestigate.jobs.tasks.parse import parse_task
from kvestigate.jobs.tasks.placement import place
from kvestigate.jobs.tasks.statuses import TaskJob
from kvestigate.jobs.users import User
from kvestigate.kube import builtins
from kvestigate.kube.views.meta import Condition, Metadata
from kvestigate.kube.views.workloads import JobStatus
from tests.jobs.conftest import LauncherOf
from tests.jobs.tasks_of import JOBS, begin, ended, finish, jobs_of, pod_of, running

THEN = datetime(2026, 1, 1, tzinfo=UTC)
START = {labels.START_WITHIN: "600"}


def job(index: int, state: State, *, failed_after: float = 0) -> TaskJob:
    conditions: tuple[Condition, ...] = ()
    if state in (State.FAILED, State.COMPLETED):
        kind = "Failed" if state is State.FAILED else "Complete"
        at = THEN + timedelta(seconds=failed_after)
        conditions = (Condition(kind, "True", last_transition_time=at),)
    meta = Metadata(
        f"t-node-{index}",
        labels={labels.NODE_INDEX: str(index)},
        annotations=START,
        creation_timestamp=THEN,
    )
    ready = 1 if state is State.RUNNING else 0
    return TaskJob(meta, status=JobStatus(ready=ready, conditions=conditions))


P, R, C, F = State.PENDING, State.RUNNING, State.COMPLETED, State.FAILED


@pytest.mark.parametrize(
    ("states", "gathered", "seconds", "reason", "victims"),
    [
        ([R, R], None, 10**6, None, 0),
        ([C, C], None, 10**6, None, 0),
        ([F, F], None, 0, None, 0),
        ([C, F], None, 0, None, 0),
        ([F, R], None, 0, "", 1),
        ([F, P, C], None, 0, "", 1),
        ([P, P], None, 599, None, 0),
        ([P, P], None, 600, "node-0, node-1: did not start within 600 s", 2),
        ([R, P], 0, 299, None, 0),
        ([R, P], 0, 300, "node-1: did not start within 300 s", 2),
        ([C, P], 0, 300, "node-1: did not start within 300 s", 1),
        ([R, P], 500, 600, "node-1: did not start within 600 s", 2),
    ],
)
def test_when_a_task_has_to_end(
    states: list[State], gathered: float | None, seconds: float, reason: str | None, victims: int
) -> None:
    jobs = [job(index, state) for index, state in enumerate(states)]
    since = None if gathered is None else THEN + timedelta(seconds=gathered)
    verdict = judge(jobs, since, THEN + timedelta(seconds=seconds))
    assert (verdict.reason if verdict else None) == reason
    assert len(verdict.victims if verdict else ()) == victims


def test_the_first_failure_is_the_reason() -> None:
    jobs = [job(0, F, failed_after=5), job(1, F, failed_after=2), job(2, R)]
    verdict = judge(jobs, None, THEN)
    assert verdict is not None
    assert verdict.first is jobs[1]


def test_when_to_look_again() -> None:
    assert next_look([job(0, R), job(1, R)], None, THEN) is None
    assert next_look([job(0, P), job(1, P)], None, THEN) == 600.5
    assert next_look([job(0, R), job(1, P)], THEN, THEN) == 300.5
    assert [partial([job(0, a), job(1, b)]) for a, b in ((R, P), (C, P), (R, C), (P, P))] == [
        True,
        True,
        False,
        False,
    ]


async def submitted(launcher: Launcher, **more: Any) -> str:
    task = {"run": "x", "name": "t", "num_nodes": 3, **more}
    return (await launcher.submit(task)).task_id


async def seen(launcher: Launcher, task_id: str) -> HistoryEntry:
    found = (await launcher.history(all_users=False)).tasks
    (entry,) = [each for each in found if each.task_id == task_id]
    return entry


@pytest.fixture
async def kept(api: Api) -> AsyncIterator[None]:
    """A server's loop."""
    async with Supervisor("test") as parts:
        await parts.start("keeper", Keeper(api).run)
        yield


async def until_ended(launcher: Launcher, task_id: str) -> None:
    async with aclosing(launcher.watch(task_id)) as views:
        async for _ in views:
            pass


async def test_one_failure_ends_all_with_its_reason(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane)
    jobs = await jobs_of(api, task_id)
    names = [job["metadata"]["name"] for job in jobs]
    await begin(api, names[0])
    await pod_of(api, jobs[1], ended(3))
    await finish(api, names[1], "Failed")
    assert (await jane.task(task_id)).status is State.FAILED
    reason = "node-1: the container ended with exit code 3"
    for job in await jobs_of(api, task_id):
        assert job["metadata"]["annotations"]["skypilot-reason"] == reason
        victim = job["metadata"]["name"] != names[1]
        # So the job controller ends them at once, as what has gone on for too long.
        assert (job["spec"]["activeDeadlineSeconds"] == 1) is victim
    assert f"the task was ended: {reason}" in (await jane.why(task_id)).causes
    for name in (names[0], names[2]):
        await finish(api, name, "Failed")
    entry = await seen(jane, task_id)
    assert (entry.status, entry.reason, entry.num_nodes) == ("failed", reason, 3)


async def test_a_node_that_does_not_start_ends_the_others(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane)
    jobs = await jobs_of(api, task_id)
    long_ago = (datetime.now(UTC) - timedelta(seconds=301)).strftime("%Y-%m-%dT%H:%M:%SZ")
    for job in jobs[:2]:
        await begin(api, job["metadata"]["name"])
        await pod_of(api, job, running(long_ago))
    await jane.task(task_id)
    pods = (await api.list(PODS, Selection("default"))).items
    assert [pod["spec"].get("activeDeadlineSeconds") for pod in pods] == [1, 1]
    deadlines = [job["spec"]["activeDeadlineSeconds"] for job in await jobs_of(api, task_id)]
    assert deadlines == [30 * 86400, 30 * 86400, 1]
    for job in await jobs_of(api, task_id):
        noted = job["metadata"]["annotations"]["skypilot-reason"]
        assert noted == "node-2: did not start within 300 s"


async def test_a_server_does_so_without_being_asked(api: Api, kept: None) -> None:
    jane = InProcess(api, User("jane"), kept=True)
    task_id = await submitted(jane)
    names = [job["metadata"]["name"] for job in await jobs_of(api, task_id)]
    watch = api.watch(JOBS, type=TaskJob)
    async with watch:
        await finish(api, names[2], "Failed")
        noted: set[str] = set()
        async for event in watch:
            if labels.REASON in event.object.metadata.annotations:
                noted.add(event.object.metadata.name)
            if len(noted) == 3:
                break
    for name in names[:2]:
        await finish(api, name, "Failed")
    await until_ended(jane, task_id)


async def test_what_is_held_back_and_has_no_pod_is_removed(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane)
    names = [job["metadata"]["name"] for job in await jobs_of(api, task_id)]
    await api.patch(JOBS, names[2], {"spec": {"suspend": True}}, namespace="default")
    await finish(api, names[0], "Complete")
    await finish(api, names[1], "Failed")
    assert (await jane.task(task_id)).status is State.FAILED
    assert [job["metadata"]["name"] for job in await jobs_of(api, task_id)] == names[:2]


async def test_to_keep_twice_is_to_keep_once(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane)
    for job in await jobs_of(api, task_id):
        await finish(api, job["metadata"]["name"], "Complete")
    for _ in range(2):
        found = await jane._jobs_of(task_id)
        assert await keep(api, found) is None
    assert (await seen(jane, task_id)).status == "completed"


async def test_history_outlives_tasks(launcher_of: LauncherOf, api: Api) -> None:
    jane, joe = launcher_of("jane@x"), launcher_of("jane-x")
    kinds = {}
    for end in ("completed", "failed", "stopped", "active"):
        task_id = (await jane.submit({"run": "x", "name": end})).task_id
        (job,) = await jobs_of(api, task_id)
        kinds[task_id] = end
        if end in ("completed", "failed"):
            kind = "Complete" if end == "completed" else "Failed"
            await finish(api, job["metadata"]["name"], kind)
            await until_ended(jane, task_id)
            await jane.task(task_id)
        if end == "stopped":
            await jane.stop(task_id)
    ended_one = next(task_id for task_id, end in kinds.items() if end == "completed")
    await jane.stop(ended_one)
    found = (await jane.history(all_users=False)).tasks
    assert {each.task_id: each.status for each in found} == kinds
    assert [each.name for each in found] == ["active", "stopped", "failed", "completed"]
    assert (await joe.history(all_users=False)).tasks == ()
    assert len((await joe.history(all_users=True)).tasks) == 4


async def test_what_vanished_unseen_is_said_to_be_unknown(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = (await jane.submit({"run": "x"})).task_id
    (job,) = await jobs_of(api, task_id)
    name = job["metadata"]["name"]
    await api.delete(JOBS, name, namespace="default", propagation=Propagation.BACKGROUND)
    assert (await seen(jane, task_id)).status == "unknown"


# --- started again -------------------------------------------------------------------------

EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}


async def disrupt(api: Api, job: dict[str, Any]) -> None:
    """What a drain does to the pod of a job."""
    name = f"{job['metadata']['name']}-x"
    change = {"status": {"conditions": [{**EVICTED, "message": "drained"}]}}
    await api.patch(PODS, name, change, namespace="default", subresource="status")


async def failing_node(api: Api, task_id: str, index: int, code: int = 1) -> dict[str, Any]:
    """Let all nodes run and one of them fail; its job."""
    jobs = await jobs_of(api, task_id)
    for job in jobs:
        await begin(api, job["metadata"]["name"])
        await pod_of(
            api, job, ended(code) if job is jobs[index] else running("2026-01-01T00:00:00Z")
        )
    await finish(api, jobs[index]["metadata"]["name"], "Failed")
    return jobs[index]


@pytest.mark.parametrize("drained", [0, 1])
async def test_a_drained_node_restarts_the_gang(api: Api, drained: int) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane, secrets={"TOKEN": "s"}, resources={"ports": 80})
    before = await jobs_of(api, task_id)
    # Another node may fail first, because it can no longer reach the drained one.
    await failing_node(api, task_id, 1)
    await disrupt(api, before[drained])
    await jane.task(task_id)
    after = await jobs_of(api, task_id)
    assert [job["metadata"]["name"] for job in after] == [job["metadata"]["name"] for job in before]
    assert {job["metadata"]["uid"] for job in after}.isdisjoint(
        job["metadata"]["uid"] for job in before
    )
    assert (await jane.task(task_id)).status is State.PENDING
    story = f"node-{drained}: EvictionByEvictionAPI: drained; all nodes were started again"
    assert f"before: {story}" in (await jane.why(task_id)).causes
    # What belonged to the old first job belongs to the new one.
    owner = after[0]["metadata"]["uid"]
    for resource in ("services", "secrets"):
        listed = await api.list(
            builtins.resource(resource), Selection("default", labels=f"task-id={task_id}")
        )
        assert listed.items
        for item in listed.items:
            assert [each["uid"] for each in item["metadata"]["ownerReferences"]] == [owner]
    pods = await api.list(PODS, Selection("default", labels=f"task-id={task_id}"))
    assert all("deletionTimestamp" in pod["metadata"] for pod in pods.items)
    assert (await seen(jane, task_id)).status == "active"


async def test_restarted_nodes_have_names_that_no_cache_knows(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane)
    for expected in ("again-1", "again-2"):
        job = await failing_node(api, task_id, 2)
        await disrupt(api, job)
        await jane.task(task_id)
        for pod in (await api.list(PODS, Selection("default"))).items:
            await api.delete(PODS, pod["metadata"]["name"], namespace="default", grace_seconds=0)
        for index, job in enumerate(await jobs_of(api, task_id)):
            spec = job["spec"]["template"]["spec"]
            (container,) = spec["containers"]
            assert spec["hostname"] == f"node-{index}-{expected}"
            env = {each["name"]: each.get("value", "") for each in container["env"]}
            assert env["MASTER_ADDR"] == f"node-0-{expected}.task-{task_id}"
            assert container["command"][2].count(f"node-1-{expected}.task-{task_id}") == 2


async def test_an_exit_code_to_recover_from_restarts_the_gang(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    recovery = {"job_recovery": {"max_restarts_on_errors": 1}}
    task_id = await submitted(jane, resources=recovery)
    await failing_node(api, task_id, 1)
    await jane.task(task_id)
    assert (await jane.task(task_id)).status is State.PENDING
    for pod in (await api.list(PODS, Selection("default"))).items:
        await api.delete(PODS, pod["metadata"]["name"], namespace="default", grace_seconds=0)
    await failing_node(api, task_id, 1)
    await jane.task(task_id)  # once is enough
    assert (await jane.task(task_id)).status is State.FAILED


def test_kubernetes_replaces_the_pod_of_a_single_node() -> None:
    recovery = {"max_restarts_on_errors": 2, "recover_on_exit_codes": [33]}
    task = parse_task({"run": "x", "resources": {"job_recovery": recovery}})
    made = Submission(task, "abc12345", User("jane"), "default", place(task, None), {})
    (job,) = compile_jobs(made)
    assert job["spec"]["backoffLimit"] == 2
    disruption, codes = job["spec"]["podFailurePolicy"]["rules"]
    assert (disruption["action"], codes["action"]) == ("Ignore", "Ignore")
    assert codes["onExitCodes"] == {"containerName": "task", "operator": "In", "values": [33]}


async def test_the_logs_of_all_nodes_outlive_a_failure(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane)
    await failing_node(api, task_id, 1)
    await jane.task(task_id)
    # The pods end by a deadline of their own; a job that ends would take them with it.
    pods = (await api.list(PODS, Selection("default"))).items
    deadlines = {
        pod["metadata"]["name"][-3]: pod["spec"].get("activeDeadlineSeconds") for pod in pods
    }
    assert deadlines == {"0": 1, "1": None, "2": 1}
    for job in await jobs_of(api, task_id):
        assert job["spec"]["activeDeadlineSeconds"] > 1


async def test_a_machine_that_is_out_of_sight_does_not_end_a_task_that_ran(api: Api) -> None:
    jane = InProcess(api, User("jane"))
    task_id = await submitted(jane, num_nodes=1, config={"kubernetes": {"provision_timeout": 1}})
    (job,) = await jobs_of(api, task_id)
    await pod_of(api, job, running("2026-01-01T00:00:00Z"))
    later = datetime.now(UTC) + timedelta(seconds=60)
    jobs = list((await api.list(JOBS, Selection("default"), type=TaskJob)).items)
    assert await keep(api, jobs, lambda: later) == 30.0
    (job,) = await jobs_of(api, task_id)
    assert "skypilot-reason" not in job["metadata"]["annotations"]


async def add_node(api: Api, name: str, gpu: str, count: int) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"skypilot.co/accelerator": gpu}},
    }
    await api.create(builtins.resource("nodes"), body)
    allocatable = {"cpu": "64", "memory": "64Gi", "nvidia.com/gpu": str(count)}
    await api.patch(
        builtins.resource("nodes"),
        name,
        {"status": {"allocatable": allocatable, "capacity": allocatable}},
        subresource="status",
    )


@pytest.mark.parametrize("num_nodes", [1, 2])
async def test_the_next_choice_is_tried_when_one_does_not_start(api: Api, num_nodes: int) -> None:
    for name in ("A100", "L4"):
        await add_node(api, name.lower(), name, 8)
    jane = InProcess(api, User("jane"))
    resources = {"accelerators": ["H100:1", "A100:4", "L4:2"], "ports": 80}
    timeout = {"kubernetes": {"provision_timeout": 10}}
    task_id = await submitted(jane, num_nodes=num_nodes, resources=resources, config=timeout)

    async def look(seconds: float) -> list[dict[str, Any]]:
        jobs = (await api.list(JOBS, Selection("default"), type=TaskJob)).items
        await keep(api, list(jobs), lambda: datetime.now(UTC) + timedelta(seconds=seconds))
        return await jobs_of(api, task_id)

    def gpus(job: dict[str, Any]) -> tuple[str, str]:
        spec = job["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (expression,) = terms["nodeSelectorTerms"][0]["matchExpressions"]
        env = {each["name"]: each.get("value", "") for each in container["env"]}
        count = container["resources"]["limits"]["nvidia.com/gpu"]
        assert env["SKYPILOT_NUM_GPUS_PER_NODE"] == count
        return expression["values"][0], count

    assert {gpus(job) for job in await look(5)} == {("A100", "4")}
    assert {gpus(job) for job in await look(11)} == {("L4", "2")}
    (service,) = (
        await api.list(
            builtins.resource("services"),
            Selection("default", fields=f"metadata.name=task-{task_id}-ports"),
        )
    ).items
    jobs = await look(5)
    assert service["metadata"]["ownerReferences"][0]["uid"] == jobs[0]["metadata"]["uid"]
    nodes = ", ".join(f"node-{index}" for index in range(num_nodes))
    causes = (await jane.why(task_id)).causes
    assert causes[:2] == (
        "before: skipped resources.accelerators: no node has H100",
        f"before: {nodes}: did not start within 10 s; L4:2 is tried instead",
    )
    await look(11)
    assert f"the task was ended: {nodes}: did not start within 10 s" in (
        await _reasons(api, task_id)
    )


async def _reasons(api: Api, task_id: str) -> list[str]:
    return [
        f"the task was ended: {job['metadata']['annotations']['skypilot-reason']}"
        for job in await jobs_of(api, task_id)
    ]
