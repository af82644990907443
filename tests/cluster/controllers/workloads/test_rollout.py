"""The next sizes of a Deployment's ReplicaSets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.cluster.controllers.objects import Deployment, ReplicaSet
from kvestigate.cluster.controllers.workloads import rollout
from kvestigate.cluster.controllers.workloads.rollout import Sets
from tests.cluster.controllers.builders import at, view
from tests.cluster.controllers.objects import template


def deployment(replicas: int, surge: Any = 1, unavailable: Any = 0, **spec: Any) -> Deployment:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    given = {"replicas": replicas, "strategy": strategy, "template": template("web:2"), **spec}
    return view(Deployment, "web", spec=given)


def replica_set(
    name: str, replicas: int, available: int | None = None, image: str = "web:1", **meta: Any
) -> ReplicaSet:
    found = replicas if available is None else available
    return view(
        ReplicaSet,
        name,
        meta=meta,
        spec={"replicas": replicas, "template": template(image)},
        status={"replicas": replicas, "availableReplicas": found, "observedGeneration": 1},
    )


def new(replicas: int, available: int | None = None, **meta: Any) -> ReplicaSet:
    return replica_set("new", replicas, available, "web:2", **meta)


def sets(deployment: Deployment, *found: ReplicaSet) -> Sets:
    return rollout.sort_out(deployment, found)


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (3, "25%", "25%", (1, 0)),
        (1, "0%", "25%", (0, 1)),
        (4, 0, 0, (0, 1)),
        (2, 1, 5, (1, 2)),
        (0, 1, 1, (1, 0)),
    ],
)
def test_bounds(replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]) -> None:
    it = deployment(replicas, surge, unavailable)
    assert (rollout.surge(it), rollout.unavailable(it)) == expected


@pytest.mark.parametrize(
    ("it", "found", "expected"),
    [
        pytest.param(
            deployment(3), [replica_set("old", 3), new(0)], {"new": 1}, id="up by the surge"
        ),
        pytest.param(
            deployment(3), [replica_set("old", 3), new(1, 0)], {}, id="wait for the new one"
        ),
        pytest.param(
            deployment(3), [replica_set("old", 3), new(1)], {"old": 2}, id="then one old one goes"
        ),
        pytest.param(
            deployment(3, 0, 1),
            [replica_set("old", 3), new(0)],
            {"old": 2},
            id="without a surge first down",
        ),
        pytest.param(
            deployment(3, 0, 1),
            [replica_set("old", 3, 1), new(0)],
            {"old": 2},
            id="broken pods do not raise what may go",
        ),
        pytest.param(
            deployment(4, 0, 2),
            [replica_set("a", 2, 0), replica_set("b", 2), new(0)],
            {"a": 0},
            id="broken pods go first",
        ),
        pytest.param(deployment(2), [new(5)], {"new": 2}, id="too large"),
        pytest.param(deployment(3), [replica_set("old", 0), new(3)], {}, id="done"),
    ],
)
def test_the_next_step(it: Deployment, found: list[ReplicaSet], expected: dict[str, int]) -> None:
    assert rollout.roll(it, sets(it, *found)) == expected


def _sized(it: ReplicaSet, desired: int, maximum: int) -> ReplicaSet:
    notes = {rollout.DESIRED: str(desired), rollout.MAXIMUM: str(maximum)}
    image = it.spec.template["spec"]["containers"][0]["image"]
    status = it.status.available_replicas
    return replica_set(it.metadata.name, it.spec.replicas, status, image, annotations=notes)


def test_a_changed_size_is_shared_in_the_middle_of_a_roll_out() -> None:
    it = deployment(20, 3, 2)
    found = sets(it, _sized(replica_set("old", 8), 10, 13), _sized(new(5), 10, 13))
    assert rollout.is_rescaled(it, found)
    sizes = rollout.rescale(it, found)
    assert sizes == {"old": 14, "new": 9}
    assert sum(sizes.values()) == 23


def test_scaling_to_nothing_takes_all() -> None:
    it = deployment(0)
    found = sets(it, _sized(replica_set("old", 3), 4, 5), _sized(new(2), 4, 5))
    assert rollout.rescale(it, found) == {"old": 0, "new": 0}


def test_history_beyond_the_limit_is_forgotten_from_the_oldest() -> None:
    it = deployment(1, revisionHistoryLimit=1)
    old = [
        replica_set(name, size, annotations={rollout.REVISION: revision})
        for name, size, revision in (("a", 0, "2"), ("b", 0, "10"), ("c", 1, "1"))
    ]
    found = sets(it, *old, new(1))
    assert [each.metadata.name for each in rollout.to_forget(it, found)] == ["a"]


def test_of_two_equal_templates_the_older_is_the_new_one() -> None:
    it = deployment(1)
    younger = replica_set("b", 1, image="web:2", creationTimestamp=at(-10))
    older = replica_set("c", 1, image="web:2", creationTimestamp=at(-20))
    assert sets(it, younger, older).new is older


@given(
    replicas=st.integers(1, 12),
    surge=st.integers(0, 4),
    unavailable=st.integers(0, 4),
    healthy=st.booleans(),
)
def test_every_roll_out_ends_within_its_bounds(
    replicas: int, surge: int, unavailable: int, healthy: bool
) -> None:
    it = deployment(replicas, surge, unavailable)
    most = replicas + rollout.surge(it)
    least = replicas - rollout.unavailable(it)
    old, fresh = replica_set("old", replicas), new(0)
    for _ in range(4 * replicas + 4):
        found = sets(it, old, fresh)
        sizes = rollout.roll(it, found)
        if not sizes:
            break
        old = replica_set("old", sizes.get("old", old.spec.replicas))
        size = sizes.get("new", fresh.spec.replicas)
        fresh = new(size, size if healthy else 0)
        assert old.spec.replicas + fresh.spec.replicas <= most
        assert rollout.available_in([old, fresh]) >= least
    if healthy:
        assert (old.spec.replicas, fresh.spec.replicas) == (0, replicas)
    else:
        assert old.spec.replicas >= least
