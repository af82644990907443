"""What a node says of a pod."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.node.pods.records import ContainerRecord, Exit, Health, Run, Waiting
from kvestigate.cluster.node.pods.status import Place, pod_status
from kvestigate.cluster.node.spec.pod import Pod, PodStatus
from tests.cluster.node.pods.test_lifecycle import NOW, exited, pod, running, sidecar

JOB_WITH_SIDECAR = pod(init=(sidecar("s"),), restartPolicy="Never")
PLACE = Place("127.0.0.1", "10.244.0.2")


def status(of: Pod, **records: ContainerRecord) -> Any:
    return pod_status(of, records, NOW, started_at=NOW - 50, place=PLACE)


def conditions(found: Any) -> dict[str, str]:
    return {one["type"]: one["status"] for one in found["conditions"]}


@pytest.mark.parametrize(
    ("made", "records", "phase"),
    [
        (pod(), {}, "Pending"),
        (pod(init=("a",)), {"a": running()}, "Pending"),
        (pod(), {"main": running()}, "Running"),
        (pod("a", "b"), {"a": running(), "b": exited(1)}, "Running"),
        (pod(), {"main": exited(1, pause=10.0)}, "Running"),
        (pod(restartPolicy="Never"), {"main": exited(0)}, "Succeeded"),
        (pod(restartPolicy="Never"), {"main": exited(3)}, "Failed"),
        (pod("a", "b", restartPolicy="Never"), {"a": exited(0), "b": exited(1)}, "Failed"),
        (pod(init=("a",), restartPolicy="Never"), {"a": exited(1)}, "Failed"),
        (JOB_WITH_SIDECAR, {"s": running(), "main": exited()}, "Running"),
        (pod(deleted=True), {"main": exited(0)}, "Succeeded"),
        (pod(activeDeadlineSeconds=10), {"main": exited(0)}, "Failed"),
    ],
)
def test_the_phase_follows_from_the_containers(
    made: Pod, records: dict[str, ContainerRecord], phase: str
) -> None:
    assert status(made, **records)["phase"] == phase


def test_a_running_pod_is_ready_when_all_its_containers_are() -> None:
    made = pod("a", "b")
    assert conditions(status(made, a=running(), b=running()))["Ready"] == "True"
    unready = running(health=Health(ready=False))
    found = status(made, a=running(), b=unready)
    assert conditions(found)["Ready"] == "False"
    (ready,) = [one for one in found["conditions"] if one["type"] == "Ready"]
    assert ready["message"] == "containers with unready status: [b]"


@pytest.mark.parametrize(
    ("conditions", "ready", "message"),
    [
        ([], "False", "does not exist."),
        ([{"type": "gate", "status": "False"}], "False", 'is not "True", but False'),
        ([{"type": "gate", "status": "True"}], "True", None),
    ],
)
def test_readiness_gates_count(
    conditions: list[dict[str, str]], ready: str, message: str | None
) -> None:
    made = pod(readinessGates=[{"conditionType": "gate"}])
    stored = msgspec.convert({"conditions": conditions}, PodStatus)
    found = status(msgspec.structs.replace(made, status=stored), main=running())
    (judged,) = [one for one in found["conditions"] if one["type"] == "Ready"]
    assert judged["status"] == ready
    assert judged["message"] is message or str(judged["message"]).endswith(str(message))


def test_an_unfinished_init_container_is_told() -> None:
    found = status(pod(init=("a", "b")), a=exited(), b=running())
    (initialized,) = [one for one in found["conditions"] if one["type"] == "Initialized"]
    assert initialized["status"] == "False"
    assert initialized["message"] == "containers with incomplete status: [b]"


def test_a_condition_keeps_its_time_until_it_changes() -> None:
    first = status(pod(), main=running())
    later = pod_status(
        pod(), {"main": running()}, NOW + 60, started_at=NOW, place=PLACE, before=first
    )
    assert later["conditions"] == first["conditions"]


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (ContainerRecord(), {"waiting": {"reason": "ContainerCreating"}}),
        (
            ContainerRecord(waiting=Waiting("ImageEntrypointUnknown", "why")),
            {"waiting": {"reason": "ImageEntrypointUnknown", "message": "why"}},
        ),
        (running(), {"running": {"startedAt": "1970-01-01T00:16:35Z"}}),
        (
            exited(1, pause=20.0),
            {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": "back-off 20s restarting failed container=main pod=web_(u)",
                }
            },
        ),
    ],
)
def test_the_state_of_a_container(record: ContainerRecord, state: Any) -> None:
    assert status(pod(), main=record)["containerStatuses"][0]["state"] == state


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Exit(0, NOW), "Completed"),
        (Exit(3, NOW), "Error"),
        (Exit(137, NOW, reason="OOMKilled"), "OOMKilled"),
        (Exit(127, NOW, reason="ContainerCannotRun", message="no such file"), "ContainerCannotRun"),
    ],
)
def test_an_exit_is_told_with_its_reason(ending: Exit, reason: str) -> None:
    record = ContainerRecord(run=Run("id", NOW - 1, ending))
    (found,) = status(pod(restartPolicy="Never"), main=record)["containerStatuses"]
    terminated = found["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (ending.code, reason)
    assert terminated.get("message", "") == ending.message


def test_a_waiting_container_behind_init_containers_is_initializing() -> None:
    found = status(pod(init=("a",)), a=running())
    assert found["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_the_deadline_is_told_as_the_reason() -> None:
    assert status(pod(activeDeadlineSeconds=10), main=exited(143))["reason"] == "DeadlineExceeded"
