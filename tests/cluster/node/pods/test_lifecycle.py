"""What happens next to a pod: decided from values, without a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.node.pods import lifecycle
from kvestigate.cluster.node.pods.lifecycle import Action, Finish, Start, Stop, decide
from kvestigate.cluster.node.pods.records import ContainerRecord, Exit, Health, Run, Waiting
from kvestigate.cluster.node.spec.pod import Pod

NOW = 1000.0


def pod(*containers: str, init: tuple[Any, ...] = (), deleted: bool = False, **spec: Any) -> Pod:
    metadata = {"name": "web", "uid": "u"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    inits = [{"name": one} if isinstance(one, str) else one for one in init]
    return msgspec.convert(
        {
            "metadata": metadata,
            "spec": {
                "containers": [{"name": name} for name in containers or ("main",)],
                "initContainers": inits,
                **spec,
            },
        },
        Pod,
    )


def sidecar(name: str) -> dict[str, str]:
    return {"name": name, "restartPolicy": "Always"}


def running(**more: Any) -> ContainerRecord:
    return ContainerRecord(run=Run("r", NOW - 5), **more)


def exited(code: int = 0, *, ago: float = 1.0, **more: Any) -> ContainerRecord:
    return ContainerRecord(run=Run("r", NOW - ago - 1, Exit(code, NOW - ago)), **more)


def actions(pod: Pod, **records: ContainerRecord) -> list[Action]:
    return list(decide(pod, records, NOW, started_at=NOW - 100).actions)


@pytest.mark.parametrize(
    ("init", "records", "expected"),
    [
        ((), {}, ["main"]),
        (("a", "b"), {}, ["a"]),
        (("a", "b"), {"a": running()}, []),
        (("a", "b"), {"a": exited()}, ["b"]),
        (("a", "b"), {"a": exited(), "b": exited()}, ["main"]),
        (("a",), {"a": exited(1)}, ["a"]),
        ((sidecar("s"), "a"), {}, ["s"]),
        ((sidecar("s"), "a"), {"s": running()}, ["a"]),
        ((sidecar("s"), "a"), {"s": running(health=Health(started=False))}, []),
        ((sidecar("s"),), {"s": running()}, ["main"]),
        ((sidecar("s"),), {"s": exited(0), "main": running()}, ["s"]),
        # Once the main containers have run, a lost init record starts nothing anew.
        (("a",), {"main": running()}, []),
    ],
)
def test_containers_start_in_their_order(
    init: tuple[Any, ...], records: dict[str, ContainerRecord], expected: list[str]
) -> None:
    assert actions(pod(init=init), **records) == [Start(name) for name in expected]


def test_main_containers_start_together() -> None:
    assert actions(pod("a", "b")) == [Start("a"), Start("b")]


@pytest.mark.parametrize(
    ("policy", "code", "expected"),
    [
        ("Always", 0, [Start("main")]),
        ("Always", 1, [Start("main")]),
        ("OnFailure", 0, [Finish()]),
        ("OnFailure", 1, [Start("main")]),
        ("Never", 0, [Finish()]),
        ("Never", 1, [Finish()]),
    ],
)
def test_the_restart_policy_decides_after_an_exit(
    policy: str, code: int, expected: list[Action]
) -> None:
    assert actions(pod(restartPolicy=policy), main=exited(code)) == expected


def test_a_failed_init_container_that_is_not_restarted_ends_the_pod() -> None:
    assert actions(pod(init=("a",), restartPolicy="Never"), a=exited(1)) == [Finish()]


def test_restarts_wait_longer_each_time_up_to_five_minutes() -> None:
    record = ContainerRecord()
    now = 0.0
    pauses = []
    for _ in range(8):
        record = lifecycle.started(record, Run("r", now), Health())
        now += 1
        record = lifecycle.exited(record, Exit(1, now))
        pauses.append(lifecycle.due_at(record) - now)
        now = lifecycle.due_at(record)
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
    assert record.restarts == 7


def test_a_long_run_wipes_the_back_off() -> None:
    record = exited(1, pause=300.0)
    assert lifecycle.due_at(record) == NOW - 1 + 300
    assert record.run is not None
    long = msgspec.structs.replace(record.run, started_at=NOW - 700)
    assert lifecycle.due_at(msgspec.structs.replace(record, run=long)) == NOW - 1


def test_a_back_off_is_a_time_to_wake_at_not_an_action() -> None:
    plan = decide(pod(), {"main": exited(1, pause=20.0)}, NOW, started_at=0)
    assert (plan.actions, plan.wake_at) == ((), NOW + 19)


def test_a_failed_start_is_tried_again_when_it_is_due() -> None:
    waiting = ContainerRecord(waiting=Waiting("CreateContainerError"), retry_at=NOW + 5)
    assert decide(pod(), {"main": waiting}, NOW, started_at=0).wake_at == NOW + 5
    assert decide(pod(), {"main": waiting}, NOW + 5, started_at=0).actions == (Start("main"),)


def test_deletion_stops_containers_together_and_sidecars_after_them_in_reverse() -> None:
    gone = pod("a", "b", init=(sidecar("s"), sidecar("t")), deleted=True)
    up = running()
    stops = [one for one in actions(gone, s=up, t=up, a=up, b=up) if isinstance(one, Stop)]
    assert [(one.container, one.after) for one in stops] == [
        ("a", ()),
        ("b", ()),
        ("t", ("a", "b")),
        ("s", ("a", "b", "t")),
    ]
    going = running(stopping=True)
    assert actions(gone, s=going, t=going, a=going, b=exited()) == []
    assert actions(gone, s=exited(), t=exited(), a=exited(), b=exited()) == [Finish()]


def test_the_next_container_waits_for_the_hook_of_the_one_before() -> None:
    both = pod("a", "b")
    assert actions(both, a=running(hooked=True)) == []
    assert actions(both, a=running()) == [Start("b")]
    beside = pod("a", init=(sidecar("s"),))
    assert actions(beside, s=running(hooked=True)) == []
    assert actions(beside, s=running()) == [Start("a")]


def test_a_deleted_pod_that_never_started_is_finished_at_once() -> None:
    assert actions(pod(deleted=True)) == [Finish()]


def test_sidecars_end_when_the_work_is_done() -> None:
    job = pod(init=(sidecar("s"),), restartPolicy="Never")
    (stop,) = actions(job, s=running(), main=exited())
    assert isinstance(stop, Stop)
    assert stop.container == "s"


def test_the_active_deadline_ends_a_pod_and_wakes_for_it() -> None:
    late = pod(activeDeadlineSeconds=100)
    (stop,) = decide(late, {"main": running()}, NOW, started_at=NOW - 100).actions
    assert isinstance(stop, Stop)
    plan = decide(late, {"main": running()}, NOW, started_at=NOW - 40)
    assert (plan.actions, plan.wake_at) == ((), NOW + 60)


@pytest.mark.parametrize(
    ("health", "word"),
    [(Health(alive=False), "liveness"), (Health(started=False, alive=False), "startup")],
)
def test_an_unhealthy_container_is_stopped_to_be_restarted(health: Health, word: str) -> None:
    (stop,) = actions(pod(), main=running(health=health))
    assert isinstance(stop, Stop)
    assert stop.why == f"Container main failed {word} probe, will be restarted"
    assert actions(pod(), main=running(health=health, stopping=True)) == []


LOOK = [{"name": "look"}]


def test_an_ephemeral_container_starts_at_once_and_only_once() -> None:
    looked_at = pod(ephemeralContainers=LOOK)
    assert actions(looked_at, main=running()) == [Start("look")]
    assert actions(looked_at, main=running(), look=running()) == []
    assert actions(looked_at, main=running(), look=exited(1)) == []
    waiting = pod(init=("first",), ephemeralContainers=LOOK)
    assert actions(waiting, first=running()) == [Start("look")]


def test_a_pod_does_not_wait_for_its_ephemeral_containers() -> None:
    done = pod(ephemeralContainers=LOOK, restartPolicy="Never")
    (stop,) = actions(done, main=exited(), look=running())
    assert isinstance(stop, Stop)
    assert stop.container == "look"
    assert actions(done, main=exited(), look=exited()) == [Finish()]
