"""Which nodes and pods are meant, and which of them can be asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kvestigate.client.api import Api
from kvestigate.errors import NotFound, UsageError
from kvestigate.fanout.targets import (
    TargetKind,
    TargetOptions,
    chosen_hosts,
    chosen_pods,
)
from kvestigate.kube.views.pods import Container, Pod, PodSpec
from kvestigate.node_access.model import NodeAccess
from kvestigate.node_access.reach import Hosts, sort_out
from tests.bed import plane

RUNNING: dict[str, Any] = {"running": {}}


def pod(name: str, node: str = "n1", **status: Any) -> Pod:
    """One of the node-access DaemonSet, or of anything else."""
    root = {"name": "root", "mountPath": "/host"}
    main = {"name": "main", "state": RUNNING}
    value = {
        "metadata": {"name": name, "namespace": "default"} | status.pop("metadata", {}),
        "spec": {
            "nodeName": node,
            "containers": [{"name": "side"}, {"name": "main", "volumeMounts": [root]}],
        },
        "status": {"phase": "Running", "containerStatuses": [main]} | status,
    }
    return msgspec.convert(value, Pod)


async def hosts_of(*pods: Pod) -> Hosts:
    async with plane() as api:
        return _sorted(api, *pods)


def _sorted(api: Api, *pods: Pod) -> Hosts:
    return sort_out(api, NodeAccess(), ["n1", "n2"], pods)


GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (None, "DaemonSet direct-node-access has no pod on this node"),
        (pod("b", "n2", phase="Pending"), "pod b is Pending"),
        (pod("b", "n2", phase=""), "pod b is not started"),
        (pod("b", "n2", metadata=GONE), "pod b is being deleted"),
        (
            pod("b", "n2", conditions=[{"type": "Ready", "status": "False"}]),
            "pod b is not ready",
        ),
    ],
)
async def test_why_a_node_cannot_be_reached(second: Pod | None, why: str) -> None:
    hosts = await hosts_of(pod("a"), *([second] if second else []))
    assert list(hosts.nodes) == ["n1"]
    assert hosts.unreachable == {"n2": why}
    with pytest.raises(Exception, match=f"node 'n2' cannot be reached: {why}"):
        hosts.host("n2")


async def test_of_two_pods_on_a_node_the_running_one_is_taken() -> None:
    for pods in ([pod("old", metadata=GONE), pod("new")], [pod("new"), pod("old", metadata=GONE)]):
        hosts = await hosts_of(*pods)
        assert hosts.host("n1").pod == "new"
        assert "n1" not in hosts.unreachable


async def test_a_pod_without_the_root_of_its_host_is_no_way_to_it() -> None:
    spec = PodSpec(node_name="n1", containers=(Container(name="main"),))
    bare = msgspec.structs.replace(pod("a"), spec=spec)
    hosts = await hosts_of(bare)
    assert hosts.unreachable["n1"] == "pod a has no volume mounted at /host"


@pytest.mark.parametrize(
    ("selection", "found", "unreachable"),
    [
        ({}, ["n1"], ["n2"]),
        ({"nodes": ("n1",)}, ["n1"], []),
        ({"nodes": ("n2",)}, [], ["n2"]),
        ({"exclude_nodes": ("n2",)}, ["n1"], []),
        ({"nodes": ("n1", "n2"), "exclude_nodes": ("n1",)}, [], ["n2"]),
    ],
)
async def test_nodes_are_chosen_by_name(
    selection: dict[str, Any], found: list[str], unreachable: list[str]
) -> None:
    options = TargetOptions(TargetKind.NODES, **selection)
    chosen = chosen_hosts(await hosts_of(pod("a")), options)
    assert [it.name for it in chosen.found] == found
    assert [it.name for it in chosen.unreachable] == unreachable


@pytest.mark.parametrize("flag", ["nodes", "exclude_nodes"])
async def test_a_node_that_is_not_there_is_told_before_anything_runs(flag: str) -> None:
    selection: dict[str, Any] = {flag: ("nope",)}
    options = TargetOptions(TargetKind.NODES, **selection)
    with pytest.raises(NotFound, match="'nope'"):
        chosen_hosts(await hosts_of(pod("a")), options)


@pytest.mark.parametrize(
    ("status", "named", "expected"),
    [
        ({}, False, ("found", "main")),
        ({"phase": "Succeeded"}, False, None),
        ({"phase": "Succeeded"}, True, ("unreachable", "completed (Succeeded)")),
        ({"metadata": GONE}, False, None),
        ({"metadata": GONE}, True, ("unreachable", "terminating")),
        ({"phase": "Pending", "containerStatuses": []}, False,
         ("unreachable", "container main is not running")),
        ({"containerStatuses": [
            {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}, False,
         ("unreachable", "container main is not running: CrashLoopBackOff")),
    ],
)  # fmt: skip
def test_pods_that_run_are_targets(
    status: dict[str, Any], named: bool, expected: tuple[str, str] | None
) -> None:
    options = TargetOptions(TargetKind.PODS, pods=("p",) if named else (), container="main")
    chosen = chosen_pods([pod("p", **status)], options)
    got = [("found", it.container) for it in chosen.found]
    got += [("unreachable", it.reason) for it in chosen.unreachable]
    assert got == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("kind", "given", "fitting"),
    [
        (TargetKind.NODES, {"selector": "a=b"}, "--node, --exclude-node"),
        (TargetKind.NODES, {"container": "c"}, "--node, --exclude-node"),
        (TargetKind.PODS, {"nodes": ("n1",)}, "--selector, --pod, --container"),
        (TargetKind.PODS, {"deployment": "web"}, "--selector, --pod, --container"),
        (TargetKind.DEPLOYMENT, {"pods": ("p",)}, "--deployment, --container"),
        (TargetKind.DEPLOYMENT, {}, "--deployment NAME"),
    ],
)
def test_a_selection_of_another_kind_is_refused(
    kind: TargetKind, given: dict[str, Any], fitting: str
) -> None:
    with pytest.raises(UsageError) as caught:
        TargetOptions(kind, **given).check()
    assert fitting in (caught.value.hint or "")
