"""Which ordinal of a StatefulSet changes next."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.controllers.objects import StatefulSet
from kvestigate.cluster.controllers.workloads.ordinals import Revisions, decide
from kvestigate.cluster.controllers.workloads.revisions import HASH
from kvestigate.kube.views.pods import Pod
from tests.cluster.controllers.builders import NOW, at, pod, view

SAME = Revisions("db-1", "db-1")
CHANGED = Revisions("db-1", "db-2")


def stateful_set(replicas: int = 3, status: Any = None, **spec: Any) -> StatefulSet:
    return view(StatefulSet, "db", spec={"replicas": replicas, **spec}, status=status or {})


def member(ordinal: int, revision: str = "db-1", leaving: bool = False, **more: Any) -> Pod:
    meta: dict[str, Any] = {"labels": {HASH: revision}}
    if leaving:
        meta["deletionTimestamp"] = at()
    return pod(f"db-{ordinal}", meta=meta, **more)


def _plan(it: StatefulSet, pods: list[Pod], revisions: Revisions = SAME) -> tuple[Any, Any]:
    decision = decide(it, pods, revisions, NOW)
    return list(decision.create), [each.metadata.name for each in decision.delete]


PARALLEL = {"podManagementPolicy": "Parallel"}


@pytest.mark.parametrize(
    ("spec", "pods", "create", "delete"),
    [
        pytest.param({}, [], [0], [], id="one at a time"),
        pytest.param({}, [member(0)], [1], [], id="the next when the last is well"),
        pytest.param({}, [member(0, ready=False)], [], [], id="not before"),
        pytest.param({}, [member(0, leaving=True)], [], [], id="nor while one goes"),
        pytest.param(PARALLEL, [member(1, ready=False)], [0, 2], [], id="all at once"),
        pytest.param({}, [member(0, "x", phase="Failed")], [], ["db-0"], id="a failed one goes"),
        pytest.param(
            {"replicas": 1}, [member(n) for n in range(3)], [], ["db-2"], id="down from the top"
        ),
        pytest.param(
            {"replicas": 1},
            [member(0), member(1), member(2, leaving=True)],
            [],
            [],
            id="down one by one",
        ),
        pytest.param(
            {"replicas": 0, **PARALLEL},
            [member(0), member(1)],
            [],
            ["db-1", "db-0"],
            id="down together",
        ),
        pytest.param({"ordinals": {"start": 5}}, [], [5], [], id="another start"),
    ],
)
def test_filling_and_emptying(
    spec: dict[str, Any], pods: list[Pod], create: list[int], delete: list[str]
) -> None:
    made, gone = _plan(stateful_set(**spec), pods)
    assert [ordinal for ordinal, _ in made] == create
    assert gone == delete


def _old(*ordinals: int) -> list[Pod]:
    return [member(ordinal) for ordinal in ordinals]


def _update(**rolling: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}


@pytest.mark.parametrize(
    ("spec", "pods", "delete"),
    [
        pytest.param({}, _old(0, 1, 2), ["db-2"], id="from the top"),
        pytest.param({}, [*_old(0, 1), member(2, "db-2")], ["db-1"], id="and on"),
        pytest.param({}, [*_old(0, 1), member(2, "db-2", ready=False)], [], id="when it is well"),
        pytest.param({}, [member(0, ready=False), *_old(1, 2)], [], id="a broken one holds it up"),
        pytest.param(_update(partition=2), [*_old(0, 1), member(2, "db-2")], [], id="partition"),
        pytest.param({"updateStrategy": {"type": "OnDelete"}}, _old(0, 1, 2), [], id="on delete"),
        pytest.param(_update(maxUnavailable=2), _old(0, 1, 2), ["db-2", "db-1"], id="two at once"),
    ],
)
def test_updating(spec: dict[str, Any], pods: list[Pod], delete: list[str]) -> None:
    assert _plan(stateful_set(**spec), pods, CHANGED) == ([], delete)


@pytest.mark.parametrize(
    ("spec", "current", "missing", "revision"),
    [({}, 1, 0, "db-1"), ({}, 0, 0, "db-2"), (_update(partition=1), 0, 0, "db-1")],
)
def test_a_lost_pod_comes_back_as_it_was(
    spec: dict[str, Any], current: int, missing: int, revision: str
) -> None:
    it = stateful_set(1, {"currentReplicas": current}, **spec)
    assert _plan(it, [], CHANGED)[0] == [(missing, revision)]


def test_the_status_of_a_finished_update() -> None:
    pods = [member(n, "db-2") for n in range(3)]
    status = decide(stateful_set(), pods, CHANGED, NOW).status
    assert (status.current_revision, status.update_revision) == ("db-2", "db-2")
    assert (status.replicas, status.ready_replicas, status.current_replicas) == (3, 3, 3)


def test_an_update_in_its_middle_keeps_the_old_revision() -> None:
    pods = [*_old(0, 1), member(2, "db-2")]
    status = decide(stateful_set(), pods, CHANGED, NOW).status
    assert status.current_revision == "db-1"
    # One of the two is just being deleted, and must come back as the new one.
    assert (status.current_replicas, status.updated_replicas) == (1, 1)


def test_readiness_has_to_last() -> None:
    it = stateful_set(2, minReadySeconds=30)
    decision = decide(it, [member(0, since=-10)], SAME, NOW)
    assert decision.create == ()
    assert decision.pause == 20
