"""What a Job does next, for every way its pods can end."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import pytest

from kvestigate.cluster.controllers.jobs import pod_failures, verdict
from kvestigate.cluster.controllers.jobs.indexes import INDEX
from kvestigate.cluster.controllers.jobs.rules import Decision, decide
from kvestigate.cluster.controllers.jobs.tally import FINALIZER
from kvestigate.cluster.controllers.objects import Job, JobStatus
from kvestigate.kube.views.pods import Pod
from tests.cluster.controllers.builders import NOW, at, pod, view

TRACKED = {"finalizers": [FINALIZER]}


def job(status: Any = None, **spec: Any) -> Job:
    given = {"completions": 3, "parallelism": 2, **spec}
    return view(Job, "work", spec=given, status={"startTime": at(-60), **(status or {})})


def ended(name: str, phase: str, *, ago: float = 3600, code: int = 1, **meta: Any) -> Pod:
    state = {"terminated": {"exitCode": code, "finishedAt": at(-ago)}}
    statuses = [{"name": "main", "state": state}]
    return pod(name, phase, meta={**TRACKED, **meta}, containerStatuses=statuses)


def running(name: str, **meta: Any) -> Pod:
    return pod(name, meta={**TRACKED, **meta})


def index(number: int, failures: int | None = None) -> dict[str, Any]:
    notes = {INDEX: str(number)}
    if failures is not None:
        notes[pod_failures.FAILURE_COUNT] = str(failures)
    return {"annotations": notes}


def types(decision: Decision) -> list[str]:
    return [condition.type for condition in decision.status.conditions]


def reason(decision: Decision) -> str:
    return decision.status.conditions[-1].reason


def settle(it: Job, pods: list[Pod]) -> Decision:
    """Decide again and again with every write done, as long as that changes the status."""
    while True:
        decision = decide(it, pods, NOW)
        counted = {each.metadata.uid for each in decision.counted}
        gone = {each.metadata.uid for each in decision.delete}
        pods = [
            _let_go(each) if each.metadata.uid in counted else each
            for each in pods
            if each.metadata.uid not in gone
        ]
        if decision.status == it.status:
            return decision
        it = msgspec.structs.replace(it, status=decision.status)


def _let_go(it: Pod) -> Pod:
    return msgspec.structs.replace(it, metadata=msgspec.structs.replace(it.metadata, finalizers=()))


def test_it_starts_as_many_as_may_run_together() -> None:
    decision = decide(job(), [], NOW)
    assert len(decision.create) == 2
    assert decision.status.start_time is not None


def test_it_starts_no_more_than_are_missing() -> None:
    it = job({"succeeded": 2})
    assert len(decide(it, [], NOW).create) == 1


def test_an_end_is_noted_before_it_is_counted() -> None:
    decision = decide(job(), [ended("a", "Succeeded")], NOW)
    uncounted = decision.status.uncounted_terminated_pods
    assert uncounted is not None
    assert uncounted.succeeded == ("uid-a",)
    assert decision.status.succeeded == 0
    assert [each.metadata.name for each in decision.counted] == ["a"]


def test_a_noted_end_is_counted_once_the_pod_is_let_go() -> None:
    it = job({"uncountedTerminatedPods": {"succeeded": ["uid-a"]}})
    decision = decide(it, [_let_go(ended("a", "Succeeded"))], NOW)
    assert decision.status.succeeded == 1
    assert decide(it, [], NOW).status.succeeded == 1


def test_success_comes_in_two_steps() -> None:
    pods = [ended(name, "Succeeded") for name in "abc"]
    first = decide(job(), pods, NOW)
    assert types(first) == ["SuccessCriteriaMet"]
    last = settle(job(), pods)
    assert types(last) == ["SuccessCriteriaMet", "Complete"]
    assert reason(last) == "CompletionsReached"
    assert last.status.succeeded == 3
    assert last.status.completion_time is not None


def test_without_completions_one_success_ends_it_when_all_have_ended() -> None:
    it = job(completions=None)
    pods = [ended("a", "Succeeded"), running("b")]
    decision = decide(it, pods, NOW)
    assert not decision.create
    assert types(decision) == []
    assert types(settle(it, pods[:1])) == ["SuccessCriteriaMet", "Complete"]


def test_too_many_failures_end_it_and_its_pods() -> None:
    pods = [ended("a", "Failed"), ended("b", "Failed"), running("c")]
    decision = decide(job(backoffLimit=1), pods, NOW)
    assert types(decision) == ["FailureTarget"]
    assert reason(decision) == "BackoffLimitExceeded"
    assert [each.metadata.name for each in decision.delete] == ["c"]
    assert decision.failing
    assert types(settle(job(backoffLimit=1), pods)) == ["FailureTarget", "Failed"]


def test_a_pod_on_its_way_out_holds_up_the_verdict() -> None:
    pods = [ended("a", "Failed"), pod("b", meta={**TRACKED, "deletionTimestamp": at()})]
    it = job(backoffLimit=0)
    assert types(settle(it, pods)) == ["FailureTarget"]
    assert types(settle(it, pods[:1])) == ["FailureTarget", "Failed"]


@pytest.mark.parametrize(
    ("failures", "ago", "pause"), [(1, 3, 7.0), (1, 11, None), (2, 3, 17.0), (9, 100, 500.0)]
)
def test_it_waits_longer_after_each_failure(failures: int, ago: float, pause: float) -> None:
    pods = [ended(f"p{n}", "Failed", ago=ago + n) for n in range(failures)]
    decision = decide(job(backoffLimit=20), pods, NOW)
    assert decision.pause == pause
    assert bool(decision.create) == (pause is None)


def test_a_success_ends_the_waiting() -> None:
    pods = [ended("a", "Failed", ago=5), ended("b", "Succeeded", ago=2)]
    assert decide(job(), pods, NOW).create


def test_the_deadline_ends_it() -> None:
    it = job(activeDeadlineSeconds=60)
    assert reason(decide(it, [running("a")], NOW)) == "DeadlineExceeded"
    assert decide(it, [running("a"), running("b")], NOW - 10).pause == 10


def test_restarts_within_a_pod_count() -> None:
    it = job(backoffLimit=2, template={"spec": {"restartPolicy": "OnFailure"}})
    pods = [pod("a", meta=TRACKED, containerStatuses=[{"name": "main", "restartCount": 2}])]
    assert reason(decide(it, pods, NOW)) == "BackoffLimitExceeded"


def test_suspending_stops_the_pods_and_the_clock() -> None:
    decision = decide(job(suspend=True), [running("a")], NOW)
    assert [each.metadata.name for each in decision.delete] == ["a"]
    assert not decision.failing
    assert decision.status.start_time is None
    assert types(decision) == ["Suspended"]


def test_resuming_starts_them_again() -> None:
    suspended = {"type": "Suspended", "status": "True", "lastTransitionTime": at(-30)}
    decision = decide(job({"conditions": [suspended], "startTime": None}), [], NOW)
    assert decision.create
    assert reason(decision) == "JobResumed"
    assert decision.status.start_time is not None


def test_less_parallelism_takes_pods_away() -> None:
    decision = decide(job(parallelism=1), [running("a"), running("b")], NOW)
    assert len(decision.delete) == 1


def test_a_finished_or_leaving_job_only_lets_go() -> None:
    complete = {"type": "Complete", "status": "True"}
    decision = decide(job({"conditions": [complete]}), [running("a")], NOW)
    assert [each.metadata.name for each in decision.counted] == ["a"]
    assert not decision.create


class TestIndexed:
    SPEC: ClassVar[dict[str, Any]] = {
        "completionMode": "Indexed",
        "completions": 4,
        "parallelism": 3,
    }

    def test_the_lowest_free_indexes_come_first(self) -> None:
        it = job({"completedIndexes": "0"}, **self.SPEC)
        decision = decide(it, [running("b", **index(2))], NOW)
        assert [each.index for each in decision.create] == [1, 3]

    def test_completed_indexes_are_noted(self) -> None:
        pods = [ended(f"p{n}", "Succeeded", **index(n)) for n in (0, 1, 3)]
        status = decide(job(**self.SPEC), pods, NOW).status
        assert (status.completed_indexes, status.succeeded) == ("0,1,3", 3)

    def test_of_two_pods_with_one_index_one_goes(self) -> None:
        pods = [running("a", **index(0)), running("b", **index(0)), running("c", **index(9))]
        decision = decide(job(**self.SPEC), pods, NOW)
        assert [each.metadata.name for each in decision.delete] == ["b", "c"]

    def test_an_index_has_its_own_limit(self) -> None:
        it = job(**self.SPEC, backoffLimitPerIndex=1, backoffLimit=100)
        pods = [ended("a", "Failed", **index(0, 0)), ended("b", "Failed", **index(1, 1))]
        decision = decide(it, pods, NOW)
        assert decision.status.failed_indexes == "1"
        assert [(each.index, each.failures) for each in decision.create] == [(0, 1), (2, 0), (3, 0)]
        assert [each.metadata.name for each in decision.counted] == ["b"]

    def test_failed_indexes_fail_the_job_when_the_rest_is_done(self) -> None:
        it = job(
            {"completedIndexes": "0-2", "failedIndexes": "3"},
            **self.SPEC,
            backoffLimitPerIndex=0,
            backoffLimit=100,
        )
        assert reason(settle(it, [])) == "FailedIndexes"

    def test_too_many_failed_indexes_end_it_at_once(self) -> None:
        it = job(
            {"failedIndexes": "0,1"},
            **self.SPEC,
            backoffLimitPerIndex=0,
            maxFailedIndexes=1,
            backoffLimit=100,
        )
        assert reason(decide(it, [], NOW)) == "MaxFailedIndexesExceeded"

    @pytest.mark.parametrize(
        ("rule", "met"),
        [
            ({"succeededIndexes": "0,2"}, True),
            ({"succeededIndexes": "0-1"}, False),
            ({"succeededCount": 2}, True),
            ({"succeededCount": 3}, False),
            ({"succeededIndexes": "1-3", "succeededCount": 1}, True),
        ],
    )
    def test_a_success_policy_ends_it_early(self, rule: Any, met: bool) -> None:
        it = job({"completedIndexes": "0,2"}, **self.SPEC, successPolicy={"rules": [rule]})
        assert ("SuccessCriteriaMet" in types(decide(it, [], NOW))) == met


def _exit(action: str, operator: str, *codes: int) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes)}}


@pytest.mark.parametrize(
    ("rule", "code", "expected", "failed"),
    [
        (_exit("FailJob", "In", 42), 42, "PodFailurePolicy", 1),
        (_exit("FailJob", "In", 42), 1, "", 1),
        (_exit("FailJob", "NotIn", 1), 2, "PodFailurePolicy", 1),
        (_exit("Ignore", "In", 42), 42, "", 0),
        (_exit("Count", "In", 42), 42, "", 1),
    ],
)
def test_a_failure_policy_decides(rule: Any, code: int, expected: str, failed: int) -> None:
    it = job(podFailurePolicy={"rules": [rule]})
    decision = decide(it, [ended("a", "Failed", code=code)], NOW)
    uncounted = decision.status.uncounted_terminated_pods
    assert uncounted is not None
    assert len(uncounted.failed) == failed
    assert (reason(decision) if decision.status.conditions else "") == expected


def test_a_policy_sees_disruptions() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    disrupted = pod(
        "a", "Failed", meta=TRACKED, conditions=[{"type": "DisruptionTarget", "status": "True"}]
    )
    decision = decide(job(podFailurePolicy={"rules": [rule]}), [disrupted], NOW)
    assert decision.status.uncounted_terminated_pods is not None
    assert decision.status.uncounted_terminated_pods.failed == ()


def test_nothing_is_ever_counted_twice() -> None:
    it = job(completions=10, parallelism=10, backoffLimit=20)
    pods = [ended(f"s{n}", "Succeeded") for n in range(4)]
    pods += [ended(f"f{n}", "Failed") for n in range(3)]
    status: JobStatus = settle(it, pods).status
    assert (status.succeeded, status.failed) == (4, 3)
    assert verdict.is_finished_job(it) is False
