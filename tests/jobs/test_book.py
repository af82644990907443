"""Quotas hold, also when several servers are asked at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kvestigate.client.api import Api
from kvestigate.errors import Forbidden, UsageError
from kvestigate.jobs.accounts import book, records
from kvestigate.jobs.accounts.quotas import Usage, read_quotas
from kvestigate.jobs.accounts.records import MOST, Record
from kvestigate.jobs.answers import stamp
from kvestigate.jobs.in_process import InProcess
from kvestigate.jobs.remote.launcher import Remote
from kvestigate.jobs.server.serve import bound, serving
from kvestigate.jobs.server.settings import Settings
from kvestigate.jobs.users import User
from tests.jobs.tasks_of import finish, jobs_of

QUOTAS = read_quotas(
    {"default": {"jobs": 5, "cpus": 8, "gpus": 4}, "users": {"ann": {"jobs": 1}}}, "quotas"
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_several_servers_together_allow_no_more_than_one_would(api: Api) -> None:
    settings = Settings(quotas=QUOTAS)
    async with (
        serving(api, bound("127.0.0.1", 0), settings) as first,
        serving(api, bound("127.0.0.1", 0), settings) as second,
        Remote(first, User("jane")) as one,
        Remote(second, User("jane")) as other,
    ):
        launchers = [one, other] * 10
        tried = await asyncio.gather(
            *(each.submit({"run": "x", "num_nodes": 2}) for each in launchers),
            return_exceptions=True,
        )
        refused = [each for each in tried if isinstance(each, BaseException)]
        assert {type(each) for each in refused} == {Forbidden}
        assert "quota exceeded: your tasks use 5 jobs" in str(refused[0])
        assert len((await one.list_tasks(all_users=False)).tasks) == len(tried) - len(refused) == 5


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"cpus": 3}, "your tasks use 6 CPUs, this task requests 6, and the limit is 8"),
        ({"accelerators": 1}, "your tasks use 4 GPUs, this task requests 2, and the limit is 4"),
    ],
)
async def test_what_tasks_ask_for_is_added_up(
    api: Api, resources: dict[str, Any], message: str
) -> None:
    jane = InProcess(api, User("jane"), quotas=QUOTAS)
    task = {"run": "x", "num_nodes": 2, "resources": {"cpus": 3, "accelerators": 2}}
    await jane.submit(task)
    with pytest.raises(Forbidden) as caught:
        await jane.submit({"run": "x", "num_nodes": 2, "resources": resources})
    assert message in str(caught.value)
    await InProcess(api, User("joe"), quotas=QUOTAS).submit(task)


async def test_what_has_ended_or_was_stopped_does_not_count(api: Api) -> None:
    ann = InProcess(api, User("ann"), quotas=QUOTAS)
    first = (await ann.submit({"run": "x"})).task_id
    with pytest.raises(Forbidden):
        await ann.submit({"run": "x"})
    await ann.stop(first)
    second = (await ann.submit({"run": "x"})).task_id
    (job,) = await jobs_of(api, second)
    await finish(api, job["metadata"]["name"], "Complete")
    await ann.submit({"run": "x"})


async def test_what_could_not_be_made_does_not_count(api: Api) -> None:
    ann = InProcess(api, User("ann"), quotas=QUOTAS)
    with pytest.raises(UsageError):
        await ann.submit({"run": "x", "volumes": {"/d": "absent"}})
    await ann.submit({"run": "x"})


async def test_the_cluster_may_say_what_is_allowed(api: Api) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "k8s-cli-quotas"},
        "data": {"quotas.yaml": "default: {jobs: 0}\n"},
    }
    await api.create(book.CONFIG_MAPS, body, namespace="default")
    with pytest.raises(Forbidden, match="quota exceeded"):
        await InProcess(api, User("jane")).submit({"run": "x"})
    change = {"data": {"quotas.yaml": "default: {job: 0}\n"}}
    await api.patch(book.CONFIG_MAPS, "k8s-cli-quotas", change, namespace="default")
    with pytest.raises(UsageError, match=r"quotas\.yaml\.default\.job: no such field"):
        await InProcess(api, User("jane")).submit({"run": "x"})


def record(age: float = 0, **more: Any) -> Record:
    return Record("t", stamp(NOW - timedelta(seconds=age)), "u", cpus=5, gpus=2, **more)


def test_a_submission_holds_its_share_until_its_jobs_are_there() -> None:
    known = {
        "new": record(),
        "live": record(),
        "old": record(age=121),
        "ended": record(state="stopped"),
    }
    assert records.reserved(known, ["live"], NOW) == Usage(1, 5, 2)


def test_a_book_forgets_the_oldest_that_have_ended() -> None:
    known = {f"t{index}": record(age=index, state="failed") for index in range(MOST)}
    known["open"] = record(age=10**6)
    assert records.surplus(known) == [f"t{MOST - 1}"]
    assert records.surplus({"a": record()}) == []
    longest = {
        "a" * 8: records.ended(
            records.new_record("é" * 500, "x" * 26, "u" * 63, 1000, Usage(1, 10**15, 10**6)),
            "completed",
            "x" * 26,
            "ü" * 5000,
        )
    }
    size = sum(len(key) + len(records.encode(each).encode()) for key, each in longest.items())
    assert size * (MOST + 100) < 2**20


def test_what_somebody_else_wrote_is_passed_by() -> None:
    data = {"a": "{", "b": "3", "c": records.encode(record())}
    assert list(records.decode_all(data)) == ["c"]


async def test_lines_are_added_and_settled(api: Api) -> None:
    jane = User("jane")
    await asyncio.gather(
        *(book.enter(api, jane, f"task{index:04}", record(), None) for index in range(20))
    )
    await book.forget(api, jane, "task0000")
    await book.settle(
        api, jane.digest, lambda task_id, each: records.ended(each, "failed", "now", task_id)
    )
    found = await book.history(api, jane)
    assert {each.task_id for each in found} == {f"task{index:04}" for index in range(1, 20)}
    assert {each.status for each in found} == {"failed"}
