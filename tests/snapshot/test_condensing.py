"""Condensed pods share what replicas have alike, and keep what reports ask about."""

from __future__ import annotations

from typing import Any

from kvestigate.snapshot.condensing import PodCondenser
from kvestigate.snapshot.pods import Pod
from tests.snapshot.objects import as_pod, container, pod


def replica(name: str, started: str, **status: Any) -> Pod:
    body = pod(name, container(cpu="1"), on="n", volumes=[
        {"name": f"kube-api-access-{name}", "projected": {"sources": []}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    ])  # fmt: skip
    body["metadata"]["labels"] = {"app": "web"}
    body["status"] |= {
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": started},
            {"type": "ContainersReady", "status": "True", "lastTransitionTime": started},
        ],
        "containerStatuses": [{"name": "main", "state": {"running": {"startedAt": started}}}],
        "podIP": started[-3:],
        **status,
    }
    return as_pod(body)


def test_replicas_share_everything_but_their_names() -> None:
    condense = PodCondenser()
    first = condense(replica("a", "2026-01-05T08:00:01Z"))
    second = condense(replica("b", "2026-01-05T08:00:02Z"))
    assert (first.metadata.name, second.metadata.name) == ("a", "b")
    assert first.metadata.labels is second.metadata.labels
    assert first.spec.containers is second.spec.containers
    assert first.spec.volumes is second.spec.volumes
    assert first.status is second.status


def test_what_went_wrong_is_kept() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    started = "2026-01-05T08:00:01Z"
    statuses = [{"name": "main", "restartCount": 3, "state": {}, "lastState": killed}]
    before = replica("a", started, conditions=[unscheduled], containerStatuses=statuses)
    after = PodCondenser()(before)
    assert after.status.conditions == before.status.conditions
    assert after.status.container_statuses == before.status.container_statuses
    assert [it.name for it in after.spec.volumes] == ["data"]
