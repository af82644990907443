"""What every launcher does, in process and over HTTP, and what nobody may do to another."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import ApiError, KvestigateError, NotFound
from kvestigate.jobs.answers import State
from kvestigate.jobs.interface import ExecRequest, Launcher, LogRequest, VolumeRequest
from kvestigate.jobs.users import User
from kvestigate.kube import builtins
from tests.jobs.conftest import LauncherOf
from tests.jobs.tasks_of import JOBS, finish

ALICE, MALLORY = "user@x", "user-x"
"""Their labels are the same once they are sanitised."""


async def test_a_task_is_submitted_listed_and_stopped(launcher_of: LauncherOf, api: Api) -> None:
    launcher = launcher_of(ALICE)
    submitted = await launcher.submit({"name": "one", "run": "x"})
    task_id = submitted.task_id
    assert submitted.status == "submitted"
    assert submitted.message == f"Task submitted successfully with ID: {task_id}"
    status = await launcher.task(task_id)
    assert (status.task_id, status.name, status.status) == (task_id, "one", State.PENDING)
    assert status.username == "user-x"
    assert (await launcher.list_tasks(all_users=False)).tasks == (status,)
    stopped = await launcher.stop(task_id)
    assert (stopped.status, stopped.message) == ("stopped", f"Task {task_id} stopped successfully")
    assert (await launcher.list_tasks(all_users=True)).tasks == ()


@pytest.mark.parametrize(
    ("ends", "state", "counts"),
    [
        ((None, None), State.PENDING, (0, 0, 2)),
        (("Complete", None), State.RUNNING, (1, 0, 1)),
        (("Complete", "Complete"), State.COMPLETED, (2, 0, 0)),
        (("Complete", "Failed"), State.FAILED, (1, 1, 0)),
    ],
)
async def test_a_task_fares_as_its_nodes_do(
    launcher_of: LauncherOf,
    api: Api,
    ends: tuple[str | None, ...],
    state: State,
    counts: tuple[int, int, int],
) -> None:
    launcher = launcher_of(ALICE)
    task_id = (await launcher.submit({"run": "x", "num_nodes": 2})).task_id
    for index, end in enumerate(ends):
        if end is not None:
            await finish(api, f"task-{task_id}-{task_id}-node-{index}", end)
    status = await launcher.task(task_id)
    meta = status.metadata
    assert status.status is state
    assert (meta.succeeded_nodes, meta.failed_nodes, meta.pending_nodes) == counts


async def test_all_of_a_users_tasks_are_stopped_and_nobody_elses(launcher_of: LauncherOf) -> None:
    alice, mallory = launcher_of(ALICE), launcher_of(MALLORY)
    for _ in range(3):
        await alice.submit({"run": "x", "num_nodes": 2})
    await mallory.submit({"run": "x"})
    stopped = await alice.stop_all(all_users=False)
    assert (stopped.count, stopped.message) == (3, "Stopped 3 tasks")
    assert len((await mallory.list_tasks(all_users=False)).tasks) == 1
    assert (await alice.stop_all(all_users=True)).count == 1


async def test_a_submit_that_fails_half_way_leaves_nothing(
    launcher_of: LauncherOf, api: Api
) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"count/jobs.batch": "1"}},
        "status": {"hard": {"count/jobs.batch": "1"}, "used": {"count/jobs.batch": "0"}},
    }
    await api.create(builtins.resource("resourcequotas"), quota, namespace="default")
    await api.patch(
        builtins.resource("resourcequotas"),
        "few",
        {"status": quota["status"]},
        namespace="default",
        subresource="status",
    )
    with pytest.raises(ApiError, match="exceeded quota"):
        await launcher_of(ALICE).submit({"run": "x", "num_nodes": 2})
    assert (await launcher_of(ALICE).list_tasks(all_users=True)).tasks == ()


async def test_what_goes_with_a_task_is_owned_by_its_first_job(
    launcher_of: LauncherOf, api: Api
) -> None:
    task: dict[str, Any] = {"run": "x", "num_nodes": 2, "secrets": {"A": "b"}}
    task["resources"] = {"ports": 8080}
    task_id = (await launcher_of(ALICE).submit(task)).task_id
    for kind, name in (
        ("services", f"task-{task_id}"),
        ("services", f"task-{task_id}-ports"),
        ("secrets", f"task-{task_id}"),
    ):
        found = await api.get(builtins.resource(kind), name, namespace="default")
        (owner,) = found["metadata"]["ownerReferences"]
        assert owner["name"].endswith("-node-0")


# A class that is only a word on a volume that somebody made by hand.
FAST_VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "by-hand"},
    "spec": {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "fast",
        "hostPath": {"path": "/data"},
    },
}


async def test_a_volume_is_made_mounted_and_deleted(launcher_of: LauncherOf, api: Api) -> None:
    launcher = launcher_of(ALICE)
    await api.create(builtins.resource("persistentvolumes"), FAST_VOLUME)
    made = await launcher.create_volume("data", "10Gi", "fast", ("ReadWriteMany",))
    assert made.message == f"Volume created successfully with ID: {made.volume_id}"
    volume = await launcher.volume(made.volume_id)
    assert (volume.name, volume.size, volume.storage_class) == ("data", "10Gi", "fast")
    assert (volume.access_modes, volume.status) == (("ReadWriteMany",), "Pending")
    assert volume.metadata.pvc_name == f"data-{made.volume_id}"
    assert (await launcher.list_volumes(all_users=False)).volumes == (volume,)

    task_id = (await launcher.submit({"run": "x", "volumes": {"/data": "data"}})).task_id
    job = await api.get(JOBS, f"task-{task_id}-{task_id}", namespace="default")
    mounted, _ = job["spec"]["template"]["spec"]["volumes"]
    assert mounted["persistentVolumeClaim"]["claimName"] == f"data-{made.volume_id}"

    deleted = await launcher.delete_volume(made.volume_id)
    assert deleted.message == f"Volume {made.volume_id} deleted successfully"


async def test_a_volume_in_use_is_not_deleted(launcher_of: LauncherOf, api: Api) -> None:
    made = await launcher_of(ALICE).create_volume("data", "1Gi")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "reader"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "volumes": [
                {
                    "name": "v",
                    "persistentVolumeClaim": {"claimName": f"data-{made.volume_id}"},
                }
            ],
        },
    }
    await api.create(builtins.resource("pods"), pod, namespace="default")
    with pytest.raises(ApiError, match="in use by reader") as caught:
        await launcher_of(ALICE).delete_volume(made.volume_id)
    assert caught.value.http_code == 409


async def test_many_users_at_once_lose_nothing_and_see_only_theirs(
    launcher_of: LauncherOf,
) -> None:
    users = [f"user{index}@example.com" for index in range(10)]

    async def submit(user: str) -> str:
        return (await launcher_of(user).submit({"run": "x", "name": user})).task_id

    submitted = await asyncio.gather(*(submit(user) for user in users for _ in range(5)))
    seen = set()
    for user in users:
        tasks = (await launcher_of(user).list_tasks(all_users=False)).tasks
        assert {task.name for task in tasks} == {user}
        seen |= {task.task_id for task in tasks}
    assert seen == set(submitted)


async def read(launcher: Launcher, task_id: str) -> None:
    async with aclosing(launcher.logs(task_id, LogRequest(follow=False))) as lines:
        async for _ in lines:
            pass


async def views(launcher: Launcher, task_id: str) -> None:
    async with aclosing(launcher.watch(task_id)) as found:
        async for _ in found:
            pass


async def opened(launcher: Launcher, task_id: str, request: ExecRequest) -> None:
    async with await launcher.session(task_id, request):
        pass


PIECE = hashlib.sha256(b"alice's").hexdigest()

Attempt = Callable[[Launcher, str, str], Awaitable[object]]
"""Given what is Alice's: a task's ID and a volume's."""

ATTEMPTS: dict[str, tuple[Attempt, set[int]]] = {
    "see a task": (lambda m, t, v: m.task(t), {404}),
    "stop a task": (lambda m, t, v: m.stop(t), {404}),
    "read a log": (lambda m, t, v: read(m, t), {404}),
    "see a volume": (lambda m, t, v: m.volume(v), {404}),
    "delete a volume": (lambda m, t, v: m.delete_volume(v), {404}),
    "mount by name": (lambda m, t, v: m.submit({"run": "x", "volumes": {"/d": "data"}}), {422}),
    "mount by claim": (
        lambda m, t, v: m.submit({"run": "x", "volumes": {"/d": f"data-{v}"}}),
        {422},
    ),
    "select all with the ID": (lambda m, t, v: m.task(f"{t},skypilot-owner!=x"), {404}),
    "end the selector": (lambda m, t, v: m.task(f"{t},username"), {404}),
    "any ID": (lambda m, t, v: m.task("*"), {404}),
    "no ID": (lambda m, t, v: m.stop("%2e%2e"), {404}),
    "path in the ID": (lambda m, t, v: m.task(f"../tasks/{t}"), {404}),
    "upper case": (lambda m, t, v: m.task(t.upper()), {404}),
    "blank in the ID": (lambda m, t, v: m.volume(f" {v}"), {404}),
    "volume selector": (lambda m, t, v: m.delete_volume(f"{v},skypilot-owner!=x"), {404}),
    "take the owner's label": (
        lambda m, t, v: m.submit({"run": "x", "resources": {"labels": {"skypilot-owner": "x"}}}),
        {422},
    ),
    "take the user's label": (
        lambda m, t, v: m.submit({"run": "x", "resources": {"labels": {"username": "x"}}}),
        {422},
    ),
    "take the task's label": (
        lambda m, t, v: m.submit({"run": "x", "resources": {"labels": {"task-id": t}}}),
        {422},
    ),
    "label of two": (
        lambda m, t, v: m.submit({"run": "x", "resources": {"labels": {"a": "b,username=c"}}}),
        {422},
    ),
    "watch a task": (lambda m, t, v: views(m, t), {404}),
    "ask why": (lambda m, t, v: m.why(t), {404}),
    "ask for the ports": (lambda m, t, v: m.endpoint(t), {404}),
    "run a command": (lambda m, t, v: opened(m, t, ExecRequest(("id",))), {404}),
    "attach": (lambda m, t, v: opened(m, t, ExecRequest()), {404}),
    "run in another's by selector": (
        lambda m, t, v: opened(m, f"{t},a!=b", ExecRequest(("id",))),
        {404},
    ),
    "use pieces that were never sent": (
        lambda m, t, v: m.submit({"run": "x", "workdir": "."}, PIECE, (PIECE,)),
        {409},
    ),
    "send a piece under a wrong name": (lambda m, t, v: m.put_piece("0" * 64, b"evil"), {422}),
    "send a piece under a path": (lambda m, t, v: m.put_piece(f"../{PIECE}", b"evil"), {404, 422}),
    "resize a volume": (lambda m, t, v: m.resize_volume(v, "2Gi"), {404}),
    "resize a volume by name": (lambda m, t, v: m.resize_volume("data", "2Gi"), {404}),
    "list what is on a volume": (lambda m, t, v: m.volume_files(v, "/"), {404}),
    "take the queue's label": (
        lambda m, t, v: m.submit(
            {"run": "x", "resources": {"labels": {"kueue.x-k8s.io/queue-name": "vip"}}}
        ),
        {422},
    ),
    "be a volume": (
        lambda m, t, v: m.submit({"run": "x", "resources": {"labels": {"volume-id": v}}}),
        {422},
    ),
    "be a history": (
        lambda m, t, v: m.submit(
            {"run": "x", "resources": {"labels": {"skypilot-history": "true"}}}
        ),
        {422},
    ),
    "mount with a path": (
        lambda m, t, v: m.submit({"run": "x", "volumes": {"/d": f"../data-{v}"}}),
        {422},
    ),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_a_user_cannot_reach_what_is_anothers(launcher_of: LauncherOf, attempt: str) -> None:
    alice, mallory = launcher_of(ALICE), launcher_of(MALLORY)
    task_id = (await alice.submit({"run": "x", "name": "secret"})).task_id
    await alice.put_piece(PIECE, b"alice's")
    volume_id = (await alice.create_volume("data", "1Gi")).volume_id
    tried, codes = ATTEMPTS[attempt]
    with pytest.raises(KvestigateError) as caught:
        await tried(mallory, task_id, volume_id)
    if isinstance(caught.value, ApiError):
        assert caught.value.http_code in codes
    assert (await mallory.list_tasks(all_users=False)).tasks == ()
    assert (await mallory.list_volumes(all_users=False)).volumes == ()
    assert len((await alice.list_tasks(all_users=False)).tasks) == 1
    assert len((await alice.list_volumes(all_users=False)).volumes) == 1


async def test_pieces_are_each_users_own(launcher_of: LauncherOf, api: Api) -> None:
    alice, mallory = launcher_of(ALICE), launcher_of(MALLORY)
    await alice.put_piece(PIECE, b"alice's")
    assert (await alice.missing_pieces([PIECE])).missing == ()
    # Not even that somebody has such a file can be found out.
    assert (await mallory.missing_pieces([PIECE])).missing == (PIECE,)
    task_id = (await alice.submit({"run": "x", "workdir": "."}, PIECE, (PIECE,))).task_id
    piece = (await api.list(builtins.resource("secrets"))).items[0]
    (owner,) = piece["metadata"]["ownerReferences"]
    assert owner["name"] == f"task-{task_id}-{task_id}"


async def test_names_are_each_users_own(launcher_of: LauncherOf) -> None:
    alice, mallory = launcher_of(ALICE), launcher_of(MALLORY)
    first = await mallory.create_volume("data", "1Gi")
    second = await alice.create_volume("data", "1Gi")
    assert first.volume_id != second.volume_id
    with pytest.raises(KvestigateError, match="already"):
        await alice.create_volume("data", "1Gi")


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (VolumeRequest("", "1Gi"), "name: "),
        (VolumeRequest("a\nb", "1Gi"), "name: "),
        (VolumeRequest("a", "big"), "size: "),
        (VolumeRequest("a", "0"), "size: '0' is not more than 0"),
        (
            VolumeRequest("a", "1Gi", None, ("Often",)),
            "access_modes: 'Often' is not an access mode",
        ),
        (VolumeRequest("a", "1Gi", None, ()), "access_modes: at least one"),
        (VolumeRequest("a", "1Gi", "fast"), "storage_class: 'fast' does not exist"),
    ],
)
async def test_a_wrong_volume_is_refused(
    launcher_of: LauncherOf, request_: VolumeRequest, message: str
) -> None:
    with pytest.raises(KvestigateError, match=message):
        await launcher_of(ALICE).ask(Launcher.create_volume, request_)


# --- what another tool made ----------------------------------------------------------------


def foreign_job(index: int, **more: str) -> dict[str, Any]:
    """A job with exactly the labels that the launcher is specified by."""
    own = {"skypilot-task": "true", "task-id": "0a1b2c3d", "task-name": "other", **more}
    own |= {"username": "alice-example.com", "node-idx": str(index)}
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"other-0a1b2c3d-node-{index}", "labels": own},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


async def test_a_task_of_another_tool_is_seen_and_stopped_by_its_user(
    launcher_of: LauncherOf, api: Api
) -> None:
    alice, bob = launcher_of("alice@example.com"), launcher_of("bob")
    for index in (0, 1):
        await api.create(JOBS, foreign_job(index), namespace="default")
    (task,) = (await alice.list_tasks(all_users=False)).tasks
    assert (task.task_id, task.name, task.metadata.num_nodes) == ("0a1b2c3d", "other", 2)
    assert (await alice.task("0a1b2c3d")).username == "alice-example.com"
    await alice.why("0a1b2c3d")
    assert not (await bob.list_tasks(all_users=False)).tasks
    with pytest.raises(NotFound):
        await bob.stop("0a1b2c3d")
    await alice.stop("0a1b2c3d")
    assert not (await alice.list_tasks(all_users=False)).tasks


async def test_the_hash_of_the_owner_decides_where_there_is_one(
    launcher_of: LauncherOf, api: Api
) -> None:
    stranger = {"skypilot-owner": User("alice-example.com").digest}
    await api.create(JOBS, foreign_job(0, **stranger), namespace="default")
    alice, namesake = launcher_of("alice@example.com"), launcher_of("alice-example.com")
    assert not (await alice.list_tasks(all_users=False)).tasks
    assert (await namesake.list_tasks(all_users=False)).tasks


async def test_a_volume_of_another_tool_is_mounted_and_deleted_by_its_user(
    launcher_of: LauncherOf, api: Api
) -> None:
    alice = launcher_of("alice@example.com")
    own = {"skypilot-volume": "true", "volume-id": "9z8y7x6w", "volume-name": "set"}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "set-9z8y7x6w", "labels": own | {"username": "alice-example.com"}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await api.create(builtins.resource("persistentvolumeclaims"), claim, namespace="default")
    (volume,) = (await alice.list_volumes(all_users=False)).volumes
    assert (volume.volume_id, volume.name) == ("9z8y7x6w", "set")
    task = (await alice.submit({"run": "x", "volumes": {"/data": "set"}})).task_id
    job = await api.get(JOBS, f"task-{task}-{task}", namespace="default")
    mounted, _ = job["spec"]["template"]["spec"]["volumes"]
    assert mounted["persistentVolumeClaim"] == {"claimName": "set-9z8y7x6w"}
    await alice.delete_volume("set")
    assert not (await alice.list_volumes(all_users=False)).volumes
