"""Classes and verdicts follow from the readings alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate.optimize.activity import (
    Activity,
    NodeWindow,
    Readiness,
    Verdict,
    gpu_window,
    node_window,
)
from kvestigate.optimize.smi import Reading
from kvestigate.optimize.summary import summarize
from tests.optimize.conftest import node


def reading(
    utilization: float | None,
    memory: float = 4,
    *,
    index: int = 0,
    traffic: float | None = 0.0,
    watts: float | None = 60.0,
) -> Reading:
    return Reading(index, f"GPU-{index}", utilization, traffic, memory, 97887.0, 40.0, watts, 600.0)


@pytest.mark.parametrize(
    ("seen", "activity"),
    [
        (reading(0), Activity.IDLE),
        (reading(0.9, 1023), Activity.IDLE),
        (reading(0, 1024), Activity.RESERVED_IDLE),
        (reading(0, 90_000, watts=None), Activity.RESERVED_IDLE),
        (reading(0, 90_000, watts=299), Activity.RESERVED_IDLE),
        (reading(0, 90_000, watts=300), Activity.LIGHT),
        (reading(0, 90_000, traffic=1.0), Activity.LIGHT),
        (reading(0, traffic=None), Activity.IDLE),
        (reading(1), Activity.LIGHT),
        (reading(29.9), Activity.LIGHT),
        (reading(30), Activity.ACTIVE),
        (reading(89.9), Activity.ACTIVE),
        (reading(90), Activity.SATURATED),
        (reading(None, 90_000), None),
    ],
)
def test_a_gpu_is_what_it_does(seen: Reading, activity: Activity | None) -> None:
    assert gpu_window([seen]).activity is activity


@pytest.mark.parametrize(
    ("rounds", "mean", "bursty"),
    [
        ([100], 100, False),
        ([0, 0, 0], 0, False),
        ([0, 40], 20, False),
        ([0, 41], 20.5, True),
        ([0, 0, 0, 0, 100], 20, True),
        ([60, 80, 100], 80, False),
    ],
)
def test_a_burst_is_far_above_the_mean(rounds: list[float], mean: float, bursty: bool) -> None:
    found = gpu_window([reading(it) for it in rounds])
    assert (found.mean, found.max, found.min) == (mean, max(rounds), min(rounds))
    assert found.bursty is bursty
    assert found.utilization == tuple(rounds)


def window(
    rounds: Sequence[Sequence[float | None]], stated: int = 1, memory: float = 90_000
) -> NodeWindow:
    told = [[reading(each, memory, index=at) for at, each in enumerate(row)] for row in rounds]
    return node_window(node("n", (stated,) if stated else ()), told, 0.05)


@pytest.mark.parametrize(
    ("rounds", "stated", "verdict", "confident"),
    [
        ([[0, 0]], 1, Verdict.GHOST, False),
        ([[0, 0], [0, 0]], 1, Verdict.GHOST, True),
        ([[0, 9]], 1, Verdict.GHOST, False),
        ([[0, 10]], 1, Verdict.ACTIVE, False),
        ([[0, 0], [0, 9]], 1, Verdict.GHOST, False),
        ([[0, 4], [4, 4.9]], 1, Verdict.GHOST, True),
        ([[0, 0]], 0, Verdict.NO_ALLOCATION, False),
        ([[100, 100]], 0, Verdict.NO_ALLOCATION, False),
        ([[None, None]], 1, Verdict.NO_SAMPLES, False),
        ([], 1, Verdict.NO_SAMPLES, False),
        ([[]], 0, Verdict.NO_SAMPLES, False),
    ],
)
def test_the_verdict_is_the_mean_of_all_readings(
    rounds: list[list[float | None]], stated: int, verdict: Verdict, confident: bool
) -> None:
    found = window(rounds, stated)
    assert (found.verdict, found.confident) == (verdict, confident)
    assert bool(found.problem) == (verdict is Verdict.NO_SAMPLES)


def test_a_short_burst_is_seen_beside_a_low_mean() -> None:
    found = window([[0] * 8, [0] * 8, [100] + [0] * 7])
    assert (found.verdict, found.confident, found.max) == (Verdict.GHOST, False, 100)
    assert found.gpus[0].bursty


@pytest.mark.parametrize(
    ("rounds", "stated", "memory", "readiness"),
    [
        ([[0, 0]], 1, 4, Readiness.IDLE),
        ([[0, 0]], 0, 4, Readiness.IDLE),
        ([[0, 0]], 1, 90_000, Readiness.RESERVED_IDLE),
        ([[0, 2]], 1, 90_000, Readiness.RESERVED_ACTIVE),
        ([[50, 50]], 0, 90_000, Readiness.RESERVED_ACTIVE),
        ([[50, 50]], 1, 90_000, None),
        ([], 1, 4, None),
    ],
)
def test_only_nodes_that_are_not_active_can_be_drained(
    rounds: list[list[float | None]], stated: int, memory: float, readiness: Readiness | None
) -> None:
    assert window(rounds, stated, memory).readiness is readiness


def test_the_aggregate_leaves_out_what_does_not_report() -> None:
    mixed = window([[40, None]], stated=2)
    silent = node_window(node("z", (8,)), [], 0.05, "no pod there")
    found = summarize([mixed, silent])
    assert (found.allocated, found.capacity) == (10, 16)
    assert (found.reporting, found.reporting_nodes) == (1, 1)
    assert found.mean_utilization == 40
    assert (found.measured, found.memory_mib) == (2, 180_000)
    assert found.activity == {"active": 1}
    assert found.verdicts == {"ghost": 0, "active": 1, "no-allocation": 0, "no-samples": 1}
    assert silent.problem == "no pod there"


@given(
    st.lists(st.lists(st.one_of(st.none(), st.floats(0, 100)), min_size=2, max_size=2), max_size=5),
    st.floats(0.01, 1),
)
def test_a_confident_ghost_is_a_ghost_at_any_moment(
    rounds: list[list[float | None]], threshold: float
) -> None:
    told = [[reading(each, index=at) for at, each in enumerate(row)] for row in rounds]
    whole = node_window(node("n", (1,)), told, threshold)
    alone = [node_window(node("n", (1,)), [row], threshold).verdict for row in told]
    if whole.confident:
        assert set(alone) <= {Verdict.GHOST, Verdict.NO_SAMPLES}
    if alone and set(alone) == {Verdict.ACTIVE}:
        assert whole.verdict is Verdict.ACTIVE
