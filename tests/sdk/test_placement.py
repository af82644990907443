"""Which node gets which shard."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvestigate_client.placement import (
    NodeState,
    NoPlace,
    ShardNeeds,
    amount_of,
    node_states,
    place,
)

GIB = 1024**3


def node(name: str, **fields: Any) -> NodeState:
    asked: dict[str, Any] = {
        "ready": True,
        "schedulable": True,
        "free_cpu": 10.0,
        "free_memory": 10 * GIB,
        "free_gpus": 8,
        "load": 1.0,
    }
    return NodeState(name, **{**asked, **fields})


def names(found: list[NodeState]) -> list[str]:
    return [it.name for it in found]


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("600Gi", 600 * GIB),
        ("1.5Ti", 1536 * GIB),
        ("500M", 500_000_000),
        ("1k", 1000),
        ("12", 12),
        (0, 0),
        (2.5, 2),
        (" 1Ki ", 1024),
    ],
)
def test_an_amount_of_memory(value: Any, amount: int) -> None:
    assert amount_of(value) == amount


@pytest.mark.parametrize("value", ["", "i", "10i", "-1", "1 Gi", "Gi", "1GiB", "1e9"])
def test_what_is_no_amount_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="is no amount of memory"):
        amount_of(value)


def test_the_quietest_come_first() -> None:
    nodes = [node("a", load=0.9), node("b", load=0.1), node("c", load=0.5, free_cpu=90.0)]
    assert names(place(nodes, 2, ShardNeeds()))[:2] == ["b", "c"]


def test_or_those_with_most_left() -> None:
    nodes = [node("a", load=0.1), node("b", free_cpu=20.0), node("c", free_cpu=30.0, load=1.9)]
    assert names(place(nodes, 2, ShardNeeds(), "most-free-capacity"))[:2] == ["c", "b"]


@pytest.mark.parametrize(
    ("fields", "needs", "hosts", "why"),
    [
        ({"ready": False}, ShardNeeds(), {}, "not ready"),
        ({"schedulable": False}, ShardNeeds(), {}, "cordoned"),
        ({"free_gpus": 1}, ShardNeeds(gpus=2), {}, "1 of 2 GPUs"),
        ({"free_cpu": 1.5}, ShardNeeds(cpu=2), {}, "1.5 of 2 cores"),
        ({"free_memory": 1}, ShardNeeds(memory=2), {}, "1 of 2 bytes"),
        ({}, ShardNeeds(), {"allow_names": ["y"]}, "not one that agents may use"),
        ({}, ShardNeeds(), {"require": {"min_free_gpu": 9}}, "8 of 9 GPUs"),
        ({}, ShardNeeds(), {"require": {"min_free_cpu_cores": 80}}, "10 of 80 cores"),
    ],
)
def test_a_node_without_room_is_left_out_however_quiet_it_is(
    fields: dict[str, Any], needs: ShardNeeds, hosts: dict[str, Any], why: str
) -> None:
    with pytest.raises(NoPlace, match=f"fits on 0 nodes, and 1 is needed: x: {why}"):
        place([node("x", load=0.0, **fields)], 1, needs, hosts=hosts)


def test_nodes_that_the_operator_names_may_be_closed_for_pods() -> None:
    closed = [node("x", schedulable=False)]
    assert names(place(closed, 1, ShardNeeds(), hosts={"allow_names": ["x"]})) == ["x"]


def test_a_strategy_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="least-loaded, most-free-capacity"):
        place([], 1, ShardNeeds(), "best")


@given(st.lists(st.floats(0, 2), min_size=1, max_size=8), st.integers(1, 8))
def test_each_shard_has_a_node_of_its_own(loads: list[float], shards: int) -> None:
    nodes = [node(f"n{index}", load=load) for index, load in enumerate(loads)]
    if shards > len(nodes):
        with pytest.raises(NoPlace):
            place(nodes, shards, ShardNeeds())
    else:
        found = place(nodes, shards, ShardNeeds())
        assert len(set(names(found))) == len(nodes)
        assert [it.load for it in found] == sorted(loads)


def report(name: str, requested: int) -> dict[str, Any]:
    share = {"requested": requested, "allocatable": 1000}
    return {
        "name": name,
        "ready": True,
        "schedulable": True,
        "cpu_millis": share,
        "memory_bytes": share,
        "gpus": {"requested": 1, "allocatable": 8},
        "address": "10.0.0.1" if name == "a" else "",
    }


def test_load_is_what_is_measured_or_else_what_is_requested() -> None:
    nodes = {"report": {"nodes": [report("a", 900), report("b", 100)]}}
    usage = {
        "name": "a",
        "cpu_millis": 10,
        "cpu_allocatable": 1000,
        "memory_bytes": 40,
        "memory_allocatable": 1000,
    }
    metrics = {"report": {"available": True, "nodes": [usage]}}
    quiet, other = node_states(nodes, metrics)
    assert (quiet.load, other.load) == (0.05, 0.2)
    assert (quiet.free_cpu, quiet.free_gpus) == (0.1, 7)
    assert (quiet.address, other.address) == ("10.0.0.1", "b")
    for none in (None, {"report": {"available": False, "nodes": []}}):
        assert [it.load for it in node_states(nodes, none)] == [1.8, 0.2]


def test_gpus_that_workspaces_hold_are_not_free() -> None:
    nodes = {"report": {"nodes": [report("a", 0), report("b", 0), report("c", 0)]}}
    gpus = {"nodes": [{"node": "a", "free": 2}, {"node": "b", "free": 8}]}
    assert [it.free_gpus for it in node_states(nodes, None, gpus)] == [2, 7, 0]
