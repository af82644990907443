"""The STATUS and READY columns are those of kubectl."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kvestigate.inspection.pod_status import ready_of, restarted_at, restarts_of, status_of
from kvestigate.snapshot.pods import Pod

RUNNING: Any = {"running": {}}


def waiting(reason: str) -> Any:
    return {"waiting": {"reason": reason}}


def ended(code: int, reason: str = "", signal: int = 0) -> Any:
    return {"terminated": {"exitCode": code, "reason": reason, "signal": signal}}


def pod(
    *states: Any,
    init: tuple[Any, ...] = (),
    phase: str = "Running",
    ready: bool = True,
    sidecar: bool = False,
    **status: Any,
) -> Pod:
    policy = {"restartPolicy": "Always"} if sidecar else {}

    def all_of(prefix: str, given: tuple[Any, ...]) -> list[Any]:
        return [
            {
                "name": f"{prefix}{i}",
                "state": it,
                "ready": it is RUNNING and ready,
                "restartCount": 2,
            }
            for i, it in enumerate(given)
        ]

    body = {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": f"c{i}"} for i in range(len(states) or 1)],
            "initContainers": [{"name": f"i{i}", **policy} for i in range(len(init))],
        },
        "status": {
            "phase": phase,
            "containerStatuses": all_of("c", states),
            "initContainerStatuses": all_of("i", init),
            **status,
        },
    }
    return msgspec.convert(body, Pod)


READY = [{"type": "Ready", "status": "True"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]
GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (pod(phase="Pending"), "Pending"),
        (pod(phase="Pending", conditions=GATED), "SchedulingGated"),
        (pod(RUNNING), "Running"),
        (pod(phase="Failed", reason="Evicted"), "Evicted"),
        (pod(waiting("ContainerCreating"), phase="Pending"), "ContainerCreating"),
        (pod(RUNNING, waiting("CrashLoopBackOff")), "CrashLoopBackOff"),
        (pod(ended(0, "Completed"), phase="Succeeded"), "Completed"),
        (pod(ended(2), phase="Failed"), "ExitCode:2"),
        (pod(ended(137, signal=9), phase="Failed"), "Signal:9"),
        (pod(ended(0, "Completed"), RUNNING, conditions=READY), "Running"),
        (pod(ended(0, "Completed"), RUNNING), "NotReady"),
        (pod(init=(RUNNING, waiting("PodInitializing")), phase="Pending"), "Init:0/2"),
        (pod(init=(ended(0), waiting("PodInitializing")), phase="Pending"), "Init:1/2"),
        (pod(init=(ended(1, "Error"),), phase="Pending"), "Init:Error"),
        (pod(init=(ended(1),), phase="Pending"), "Init:ExitCode:1"),
        (pod(init=(waiting("ImagePullBackOff"),), phase="Pending"), "Init:ImagePullBackOff"),
        (pod(RUNNING, init=(RUNNING,), sidecar=True), "Running"),
        (pod(RUNNING, init=(RUNNING,), conditions=INITIALIZED), "Running"),
    ],
)
def test_status(seen: Pod, status: str) -> None:
    assert status_of(seen) == status


@pytest.mark.parametrize(
    ("seen", "ready"),
    [
        (pod(phase="Pending"), (0, 1)),
        (pod(RUNNING, RUNNING), (2, 2)),
        (pod(RUNNING, ended(1)), (1, 2)),
        (pod(RUNNING, init=(ended(0),)), (1, 1)),
        (pod(RUNNING, init=(RUNNING,), sidecar=True), (2, 2)),
        (pod(RUNNING, ready=False), (0, 1)),
    ],
)
def test_ready(seen: Pod, ready: tuple[int, int]) -> None:
    assert ready_of(seen) == ready


def test_the_last_restart_is_the_latest_of_all_containers() -> None:
    def restarted(count: int, at: str) -> dict[str, Any]:
        ended = {"exitCode": 1, "finishedAt": at}
        return {"name": "c", "restartCount": count, "lastState": {"terminated": ended}}

    def of(*statuses: dict[str, Any]) -> datetime | None:
        return restarted_at(msgspec.convert({"status": {"containerStatuses": statuses}}, Pod))

    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    assert of(restarted(1, late), restarted(3, early)) == datetime(2026, 1, 2, tzinfo=UTC)
    assert of(restarted(0, late)) is None
    assert of({"name": "c", "restartCount": 2}) is None


def test_restarts_of_all_containers_count() -> None:
    assert restarts_of(pod(RUNNING, RUNNING, init=(ended(0),))) == 6
