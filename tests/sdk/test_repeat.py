"""Over HTTP, too: same seed, same actions, the same world and the same way there.

KVESTIGATE_REPEATS=100 proves it at length.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

import pytest

from kvestigate_client import Plane, PlaneClient
from kvestigate_client.failures import Invalid

REPEATS = int(os.environ.get("KVESTIGATE_REPEATS", "5"))


def _deployment(replicas: int) -> dict[str, Any]:
    labels = {"app": "web"}
    pod = {"containers": [{"name": "main", "image": "app:1"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _act(plane: Plane) -> None:
    for replicas in (3, 1, 2):
        plane.apply(_deployment(replicas))
        plane.step(40)
    plane.delete(_deployment(2))
    plane.step()


def _hash(plane: Plane) -> str:
    """Of every object and every change, revisions and times included, names of planes not."""
    told = [plane.request("GET", "/snapshot"), plane.request("GET", "/events")]
    for each in told:
        assert each.pop("cluster") == plane.id
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


@pytest.mark.timeout(60 + 3 * REPEATS)
def test_runs_are_repeated_byte_by_byte(client: PlaneClient) -> None:
    found = set()
    for number in range(REPEATS):
        plane = client.create(f"run-{number}", clock="virtual", seed=7)
        _act(plane)
        found.add(_hash(plane))
        client.delete(plane.id)
    assert len(found) == 1


def test_forks_of_one_start_do_not_differ_either(client: PlaneClient) -> None:
    start = client.create("start", clock="virtual", seed=7)
    start.step()
    one, other = start.fork(count=2)
    for plane in (one, other):
        _act(plane)
    assert _hash(one) == _hash(other)


def test_after_a_restore_the_same_actions_lead_to_the_same_again(client: PlaneClient) -> None:
    plane = client.create("alpha", clock="virtual", seed=7)
    plane.step(60)
    plane.checkpoint("start")
    (copy,) = plane.fork("copy", 1, checkpoint="start")
    _act(copy)
    worlds = [copy.snapshot().digest()]
    for _ in range(3):
        plane.restore("start")
        _act(plane)
        worlds.append(plane.snapshot().digest())

    assert set(worlds) == {worlds[0]}


def test_a_restore_can_bring_another_seed(client: PlaneClient) -> None:
    plane = client.create("alpha", clock="virtual", seed=1)
    plane.checkpoint("start")
    worlds = []
    for seed in (None, 1, 2, 2, None):
        plane.restore("start", seed=seed)
        _act(plane)
        worlds.append(plane.snapshot().digest())

    first, same, other, again, back = worlds
    assert (first, other) == (same, again)
    assert first != other
    assert back == first


def test_chance_on_the_wall_clock_has_no_seed(client: PlaneClient) -> None:
    plane = client.create("alpha")
    plane.checkpoint("start")

    with pytest.raises(Invalid, match="runs on the wall clock"):
        plane.restore("start", seed=1)


def test_another_seed_leads_elsewhere(client: PlaneClient) -> None:
    hashes = set()
    for seed in (1, 2):
        plane = client.create(f"seed-{seed}", clock="virtual", seed=seed)
        _act(plane)
        hashes.add(_hash(plane))
    assert len(hashes) == 2
