"""Which nodes get a daemon, and how daemons are renewed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.cluster.controllers.objects import DaemonSet
from kvestigate.cluster.controllers.workloads.daemonset import decide, node_of, pod_of
from kvestigate.cluster.controllers.workloads.revisions import HASH
from kvestigate.kube.views.core import Node
from kvestigate.kube.views.pods import Pod
from tests.cluster.controllers.builders import NOW, at, pod, view
from tests.cluster.controllers.objects import template


def daemon_set(update: Any = None, **spec: Any) -> DaemonSet:
    strategy = {"type": "RollingUpdate", "rollingUpdate": update or {"maxUnavailable": 1}}
    given = {"template": template(app="agent", **spec), "updateStrategy": strategy}
    return view(DaemonSet, "agent", spec=given)


def node(name: str, *taints: tuple[str, str], **labels: str) -> Node:
    held = [{"key": key, "effect": effect} for key, effect in taints]
    return view(Node, name, meta={"labels": labels}, spec={"taints": held})


def daemon(on: str, revision: str = "new", leaving: bool = False, **more: Any) -> Pod:
    meta: dict[str, Any] = {"labels": {HASH: revision}}
    if leaving:
        meta["deletionTimestamp"] = at()
    return pod(f"{on}-{revision}", meta=meta, spec={"nodeName": on}, **more)


NODES = [node(name) for name in "abc"]


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        ({}, NODES, ["a", "b", "c"]),
        ({"nodeSelector": {"gpu": "yes"}}, [node("a"), node("b", gpu="yes")], ["b"]),
        ({}, [node("a", ("dedicated", "NoSchedule"))], []),
        ({"tolerations": [{"operator": "Exists"}]}, [node("a", ("x", "NoExecute"))], ["a"]),
        ({}, [node("a", ("node.kubernetes.io/unschedulable", "NoSchedule"))], ["a"]),
        ({}, [node("a", ("node.kubernetes.io/not-ready", "NoExecute"))], ["a"]),
        ({}, [node("a", ("x", "PreferNoSchedule"))], ["a"]),
    ],
    ids=["all", "selector", "taint", "tolerated", "cordoned", "not ready", "only preferred"],
)
def test_where_daemons_start(spec: Any, nodes: list[Node], expected: list[str]) -> None:
    assert list(decide(daemon_set(**spec), nodes, [], "new", NOW).create) == expected


@pytest.mark.parametrize(
    ("nodes", "pods", "delete"),
    [
        (NODES[:1], [daemon("gone")], ["gone-new"]),
        ([node("a", ("x", "NoExecute"))], [daemon("a")], ["a-new"]),
        ([node("a", ("x", "NoSchedule"))], [daemon("a")], []),
        (NODES[:1], [daemon("a", phase="Failed")], ["a-new"]),
        (NODES[:1], [daemon("a", leaving=True)], []),
    ],
    ids=["node gone", "driven out", "may stay", "failed", "leaving"],
)
def test_which_daemons_go(nodes: list[Node], pods: list[Pod], delete: list[str]) -> None:
    decision = decide(daemon_set(), nodes, pods, "new", NOW)
    assert [each.metadata.name for each in decision.delete] == delete


@pytest.mark.parametrize(
    ("update", "pods", "create", "delete"),
    [
        ({"maxUnavailable": 1}, [daemon(n, "old") for n in "abc"], [], ["a-old"]),
        ({"maxUnavailable": 2}, [daemon(n, "old") for n in "abc"], [], ["a-old", "b-old"]),
        (
            {"maxUnavailable": 1},
            [daemon("a", ready=False), daemon("b", "old"), daemon("c", "old")],
            [],
            [],
        ),
        (
            {"maxUnavailable": 1},
            [daemon("a", "old", ready=False), daemon("b", "old"), daemon("c", "old")],
            [],
            ["a-old"],
        ),
        (
            {"maxSurge": 1, "maxUnavailable": 0},
            [daemon(n, "old") for n in "abc"],
            ["a"],
            [],
        ),
        (
            {"maxSurge": 1, "maxUnavailable": 0},
            [daemon("a"), *(daemon(n, "old") for n in "abc")],
            ["b"],
            ["a-old"],
        ),
    ],
    ids=["one", "two", "wait", "broken first", "surge", "surge goes on"],
)
def test_renewal(update: Any, pods: list[Pod], create: list[str], delete: list[str]) -> None:
    decision = decide(daemon_set(update), NODES, pods, "new", NOW)
    assert list(decision.create) == create
    assert [each.metadata.name for each in decision.delete] == delete


def test_the_status_counts_nodes() -> None:
    nodes = [*NODES, node("d", ("x", "NoSchedule"))]
    pods = [daemon("a"), daemon("b", "old", ready=False), daemon("d")]
    status = decide(daemon_set(), nodes, pods, "new", NOW).status
    assert status.desired_number_scheduled == 3
    assert status.current_number_scheduled == 2
    assert (status.number_ready, status.number_available, status.number_unavailable) == (1, 1, 2)
    assert (status.updated_number_scheduled, status.number_misscheduled) == (1, 1)


def test_a_daemon_is_bound_for_its_node() -> None:
    body = pod_of(daemon_set(nodeSelector={"gpu": "yes"}), "a", "new")
    made = msgspec.convert({**body, "metadata": {"name": "x"}}, Pod)
    assert node_of(made) == "a"
    assert {each.key for each in made.spec.tolerations} >= {"node.kubernetes.io/unreachable"}
