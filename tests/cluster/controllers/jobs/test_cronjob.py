"""What a CronJob does at a given time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from kvestigate.cluster.controllers.jobs.cronjob import decide, job_of
from kvestigate.cluster.controllers.objects import CronJob, Job
from tests.cluster.controllers.builders import NOW, at, view


def cron_job(status: Any = None, **spec: Any) -> CronJob:
    given = {"schedule": "*/10 * * * *", **spec}
    return view(CronJob, "tick", spec=given, status=status or {})


def job(name: str, outcome: str = "", ago: float = 60) -> Job:
    conditions = [{"type": outcome, "status": "True"}] if outcome else []
    status: dict[str, Any] = {"conditions": conditions}
    if outcome == "Complete":
        status["completionTime"] = at(-ago)
    return view(Job, name, meta={"creationTimestamp": at(-ago)}, status=status)


RECENT = {"lastScheduleTime": at(-300)}


def test_it_is_due_at_its_time_and_named_after_it() -> None:
    it = cron_job(RECENT)
    decision = decide(it, [], NOW + 1)
    assert decision.create is not None
    assert decision.create.timestamp() == NOW
    body = job_of(it, decision.create)
    assert body["metadata"]["name"] == f"tick-{int(NOW) // 60}"
    assert decision.pause == pytest.approx(599)


def test_it_waits_until_then() -> None:
    decision = decide(cron_job({"lastScheduleTime": at(0)}), [], NOW + 1)
    assert decision.create is None
    assert decision.pause == pytest.approx(599)


def test_of_many_missed_times_only_the_last_is_made_up_for() -> None:
    it = cron_job({"lastScheduleTime": at(-400 * 86400)})
    decision = decide(it, [], NOW + 1)
    assert decision.create is not None
    assert decision.create.timestamp() == NOW
    assert [reason for _, reason, _ in decision.news] == ["TooManyMissedTimes"]


@pytest.mark.parametrize(("deadline", "due"), [(None, True), (5, False), (30, True)])
def test_the_starting_deadline(deadline: int | None, due: bool) -> None:
    it = cron_job(RECENT, startingDeadlineSeconds=deadline)
    assert (decide(it, [], NOW + 20).create is not None) == due


@pytest.mark.parametrize(
    ("policy", "due", "replaced"),
    [("Allow", True, []), ("Forbid", False, []), ("Replace", True, ["old"])],
)
def test_concurrency(policy: str, due: bool, replaced: list[str]) -> None:
    decision = decide(cron_job(RECENT, concurrencyPolicy=policy), [job("old")], NOW + 1)
    assert (decision.create is not None) == due
    assert [each.metadata.name for each in decision.replace] == replaced


@pytest.mark.parametrize("spec", [{"suspend": True}, {"schedule": "no"}, {"timeZone": "No/Where"}])
def test_what_never_runs(spec: Any) -> None:
    decision = decide(cron_job(RECENT, **spec), [], NOW + 1)
    assert (decision.create, decision.pause) == (None, None)


def test_history_is_kept_short() -> None:
    jobs = [job(f"good-{n}", "Complete", ago=n) for n in range(1, 5)]
    jobs += [job(f"bad-{n}", "Failed", ago=n) for n in range(1, 3)]
    decision = decide(cron_job(RECENT), jobs, NOW - 1)
    assert sorted(each.metadata.name for each in decision.forget) == ["bad-2", "good-4"]


def test_the_status_follows_the_jobs() -> None:
    reference = {"uid": "uid-done", "name": "done"}
    it = cron_job({**RECENT, "active": [reference]})
    decision = decide(it, [job("done", "Complete", ago=30), job("busy")], NOW - 1)
    assert [each.name for each in decision.status.active] == ["busy"]
    assert decision.status.last_successful_time == datetime.fromisoformat(at(-30))
    assert [reason for _, reason, _ in decision.news] == ["SawCompletedJob"]
