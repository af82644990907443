"""Scores of snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate_client import Snapshot
from kvestigate_client.scores import (
    Score,
    absent,
    all_of,
    available,
    holds,
    mean,
    running,
    weighted,
)


def pod(name: str, ready: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


SNAPSHOT = Snapshot(
    "alpha",
    "2026-01-01T00:00:00Z",
    "7",
    {
        ("apps", "deployments"): [
            {
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {"replicas": 4},
                "status": {"readyReplicas": 1},
            },
            {"metadata": {"name": "new", "namespace": "default"}, "spec": {"replicas": 0}},
            {
                "metadata": {"name": "rolling", "namespace": "default", "generation": 2},
                "spec": {"replicas": 2},
                "status": {
                    "observedGeneration": 2,
                    "replicas": 3,
                    "updatedReplicas": 2,
                    "readyReplicas": 2,
                },
            },
            {
                "metadata": {"name": "unseen", "namespace": "default", "generation": 2},
                "spec": {"replicas": 2},
                "status": {"observedGeneration": 1, "readyReplicas": 2},
            },
        ],
        ("apps", "replicasets"): [
            {
                "metadata": {"name": "set", "namespace": "default"},
                "spec": {"replicas": 2},
                "status": {"replicas": 2, "readyReplicas": 2},
            },
        ],
        ("", "pods"): [pod("a", "True"), pod("b", "False")],
    },
)
WEB = available("deployments", "web")


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (WEB, 0.25),
        (available("deployments.apps", "new"), 0.0),
        (available("deployments", "none"), 0.0),
        (available("deployments", "web", replicas=10), 0.1),
        (available("deployments", "web", replicas=2), 0.25),
        (available("deployments", "rolling"), 0.5),
        (available("deployments", "unseen"), 0.0),
        (available("replicasets", "set"), 1.0),
        (running({"app": "web"}), 1.0),
        (running({"app": "web"}, at_least=4), 0.25),
        (running({"app": "db"}), 0.0),
        (absent("pods", "c"), 1.0),
        (absent("pods", "a"), 0.0),
        (holds("pods", "a", "default", lambda found: "status" in found), 1.0),
        (holds("pods", "c", "default", lambda found: True), 0.0),
        (all_of(WEB, absent("pods", "c")), 0.25),
        (mean(WEB, absent("pods", "c")), 0.625),
        (weighted([(3, absent("pods", "c")), (1, absent("pods", "a"))]), 0.75),
    ],
)
def test_scores(score: Score, expected: float) -> None:
    assert score(SNAPSHOT) == expected
