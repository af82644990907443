"""A move is made only where the pod comes back, and a donor is emptied or left alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.policy import PodDisruptionBudget
from kvestigate.optimize.consolidation import Move
from kvestigate.optimize.steps import obstacles, waves
from kvestigate.snapshot.scheduling import Situation, Workload
from tests.snapshot.objects import container, node

MOVE = Move("ml", "web-0", 1, "a", "z")
OWNED = [{"kind": "StatefulSet", "name": "web", "uid": "web", "controller": True}]
TAINT = {"key": "dedicated", "value": "infra", "effect": "NoSchedule"}
TASK = [{"kind": "Job", "name": "job", "uid": "job", "controller": True}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(name: str = "web-0", *, owners: Any = OWNED, meta: Any = None, **spec: Any) -> Pod:
    phase = spec.pop("phase", "Running")
    given = {"name": name, "uid": name, "namespace": "ml", "ownerReferences": owners}
    body = {
        "metadata": {**given, "labels": {"app": "web"}, **(meta or {})},
        "spec": {"nodeName": "a", "containers": [container(gpu="1")], **spec},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, Pod)


def target(*, ready: bool = True, cpu: str = "8", pods: str = "9", **spec: Any) -> Node:
    body = node("z", labels={"pool": "gpu"}, gpu="8", cpu=cpu, pods=pods) | {"spec": spec}
    if not ready:
        body["status"]["conditions"] = []
    return msgspec.convert(body, Node)


def workload(uid: str, **given: Any) -> Workload:
    return msgspec.convert({"metadata": {"name": uid, "uid": uid}, **given}, Workload)


def situation(pods: Sequence[Pod], onto: Node, *more: Any, **listed: Any) -> Situation:
    donor = msgspec.convert(node("a", gpu="8"), Node)
    known = {
        "statefulsets": [workload("web", spec={"replicas": 9})],
        "jobs": [workload("job", spec={"backoffLimit": 1})],
        "nodes": [donor, onto, *more],
        "pods": pods,
        **listed,
    }
    return Situation(datetime(2026, 1, 1, tzinfo=UTC), known)


def budget(allowed: int, name: str = "guard") -> PodDisruptionBudget:
    body = {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed, "desiredHealthy": 2, "currentHealthy": 1},
    }
    return msgspec.convert(body, PodDisruptionBudget)


@pytest.mark.parametrize(
    ("there", "onto", "reason"),
    [
        (pod(), target(), ""),
        (pod(nodeSelector={"pool": "gpu"}), target(), ""),
        (
            pod(tolerations=[{"key": "dedicated", "operator": "Exists"}]),
            target(taints=[TAINT]),
            "",
        ),
        (pod(), target(taints=[TAINT | {"effect": "PreferNoSchedule"}]), ""),
        (pod(nodeName="b"), target(), "no longer on a"),
        (pod(owners=[]), target(), "no controller recreates it"),
        (pod(owners=[OWNED[0] | {"uid": "x"}]), target(), "StatefulSet web does not exist"),
        (pod(owners=[OWNED[0] | {"kind": "RayJob"}]), target(), "whether RayJob web recreates it"),
        (
            pod(owners=[{**OWNED[0], "kind": "DaemonSet", "uid": "job"}]),
            target(),
            "DaemonSet web runs a pod on every node",
        ),
        (pod(phase="Succeeded"), target(), "no longer on a"),
        (pod(volumes=[{"name": "s", "emptyDir": {}}]), target(), "the data of its emptyDir volume"),
        (pod(volumes=[{"name": "s", "ephemeral": {}}]), target(), "it uses an ephemeral volume"),
        (pod(schedulerName="mine"), target(), "scheduler mine places it"),
        (pod(resourceClaims=[{"name": "x"}]), target(), "it uses ResourceClaims"),
        (pod(tolerations=[{"operator": "Exists"}]), target(), "it tolerates cordoned nodes"),
        (pod(), target(unschedulable=True), "z is cordoned"),
        (pod(), target(ready=False), "z has a taint"),
        (pod(nodeSelector={"pool": "cpu"}), target(), "z does not match the pod's node selector"),
        (pod(), target(taints=[TAINT]), "z has a taint that the pod does not tolerate"),
        (pod(containers=[container(cpu="9", gpu="1")]), target(), "z has too little free CPU"),
        (pod(), target(pods="0"), "z runs the maximum number of pods"),
        (pod(containers=[container(gpu="9")]), target(), "z has too few free nvidia.com/gpu"),
        (
            pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]),
            target(),
            'z does not fit: persistentvolumeclaim "d" not found',
        ),
    ],
)
def test_what_keeps_a_pod(there: Pod, onto: Node, reason: str) -> None:
    found = obstacles([MOVE], situation([there], onto), data=False)
    assert found.get(MOVE, "").startswith(reason)
    assert bool(found) == bool(reason)


def test_data_may_be_given_up() -> None:
    there = situation([pod(volumes=[{"name": "s", "emptyDir": {}}])], target())
    assert obstacles([MOVE], there, data=True) == {}


@pytest.mark.parametrize(
    ("budgets", "begun", "reason"),
    [
        ([budget(1)], False, ""),
        ([budget(0)], False, "PodDisruptionBudget guard allows none"),
        ([budget(0)], True, ""),  # the new pods of the wave before are not ready yet
        ([budget(1), budget(1, "b")], False, "PodDisruptionBudgets guard, b both select it"),
    ],
)
def test_budgets_are_asked_before_anything_moves(
    budgets: list[PodDisruptionBudget], begun: bool, reason: str
) -> None:
    there = situation([pod()], target(), poddisruptionbudgets=budgets)
    found = obstacles([MOVE], there, data=False, begun=begun)
    assert found.get(MOVE, "").startswith(reason)
    assert bool(found) == bool(reason)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"spec": {"backoffLimit": 1}}, ""),
        ({"spec": {"backoffLimit": 0}}, "Job job fails: its backoffLimit of 0"),
        ({"spec": {"backoffLimit": 3}, "status": {"failed": 3}}, "Job job fails"),
        ({"spec": {"suspend": True}}, "Job job is suspended"),
        (
            {
                "spec": {
                    "backoffLimit": 0,
                    "podFailurePolicy": {
                        "rules": [
                            {
                                "action": "Ignore",
                                "onPodConditions": [{"type": "DisruptionTarget"}],
                            }
                        ]
                    },
                }
            },
            "",
        ),
    ],
)
def test_a_job_that_would_fail_keeps_its_pods(job: dict[str, Any], reason: str) -> None:
    there = situation([pod(owners=TASK)], target(), jobs=[workload("job", **job)])
    found = obstacles([MOVE], there, data=False)
    assert found.get(MOVE, "").startswith(reason)
    assert bool(found) == bool(reason)


def test_one_pod_that_stays_keeps_all_of_its_donor() -> None:
    moves = [Move("ml", f"web-{at}", 1, "a", "z") for at in range(3)]
    pods = [pod("web-0"), pod("web-1", owners=[]), pod("web-2")]
    found = obstacles(moves, situation(pods, target()), data=False)
    assert list(found.values()) == [
        "a cannot become empty",
        "no controller recreates it: it would be gone for good",
        "a cannot become empty",
    ]


def test_a_pod_that_came_after_the_plan_keeps_the_donor() -> None:
    found = obstacles([MOVE], situation([pod(), pod("late")], target()), data=False)
    assert found == {MOVE: "ml/late on a is not part of the plan"}


def test_a_pending_pod_is_not_given_the_place() -> None:
    """It fits as soon as the pod is gone, and was there first."""
    apart = {
        "podAntiAffinity": {
            REQUIRED: [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "pool"}]
        }
    }
    waiting = pod("web-1", nodeName="", affinity=apart, phase="Pending")
    donor = msgspec.convert(node("a", labels={"pool": "gpu"}, gpu="8"), Node)
    there = situation([pod(affinity=apart), waiting], target(), nodes=[donor, target()])
    assert obstacles([MOVE], there, data=False) == {MOVE: "pending pod ml/web-1 would start first"}


def test_waves_have_one_target_and_ask_no_more_than_a_budget_allows() -> None:
    moves = [
        *(Move("ml", f"web-{at}", 1, "a", "z") for at in range(3)),
        Move("ml", "web-3", 1, "a", "y"),
    ]
    other = msgspec.convert(node("y", gpu="8"), Node)
    pods = [pod(f"web-{at}") for at in range(4)]
    sizes = {}
    for allowed in (1, 2, 9):
        there = situation(pods, target(), other, poddisruptionbudgets=[budget(allowed)])
        sizes[allowed] = [len(wave) for wave in waves(moves, there, 4)]
    assert sizes == {1: [1, 1, 1, 1], 2: [2, 1, 1], 9: [3, 1]}
    assert [len(wave) for wave in waves(moves, situation(pods, target(), other), 2)] == [2, 1, 1]
