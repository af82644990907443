"""Which nodes the pods of the DaemonSet lead to, and why not to the others."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from kvestigate.client.api import Api
from kvestigate.errors import NotFound
from kvestigate.kube.views.pods import Pod
from kvestigate.node_access.reach import DEFAULT, Hosts, Unreachable, sort_out

HOST = {"name": "host", "volumeMounts": [{"name": "root", "mountPath": "/host"}]}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
NOT_READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def pod(node: str, status: dict[str, Any], containers: list[dict[str, Any]], **meta: Any) -> Pod:
    document = {
        "metadata": {"name": f"door-{node}", "namespace": "default", **meta},
        "spec": {"nodeName": node, "containers": containers},
        "status": status,
    }
    return msgspec.convert(document, Pod)


@pytest.fixture
def hosts() -> Hosts:
    pods = [
        pod("a", READY, [{"name": "side"}, HOST]),
        pod("b", NOT_READY, [HOST]),
        pod("c", {"phase": "Pending"}, [HOST]),
        pod("d", READY, [{"name": "side"}]),
    ]
    nobody = cast("Api", None)  # nothing is asked
    return sort_out(nobody, DEFAULT, ["a", "b", "c", "d", "e"], pods)


def test_a_pod_with_the_hosts_root_leads_there(hosts: Hosts) -> None:
    assert list(hosts.nodes) == ["a"]
    assert (hosts.host("a").pod, hosts.host("a").container) == ("door-a", "host")
    assert hosts.host("a").argv(("uname", "-r")) == ("chroot", "/host", "uname", "-r")


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("b", "pod door-b is not ready"),
        ("c", "pod door-c is Pending"),
        ("d", "pod door-d has no volume mounted at /host"),
        ("e", "DaemonSet direct-node-access has no pod on this node"),
    ],
)
def test_a_node_to_which_nothing_leads_says_why(hosts: Hosts, node: str, why: str) -> None:
    assert hosts.unreachable[node] == why
    with pytest.raises(Unreachable, match=why):
        hosts.host(node)


def test_only_where_there_is_no_pod_it_is_bare(hosts: Hosts) -> None:
    assert hosts.bare == {"e"}


def test_a_node_that_is_not_there_is_named(hosts: Hosts) -> None:
    with pytest.raises(NotFound, match="there is no node 'x'") as caught:
        hosts.host("x")
    assert caught.value.hint == "the nodes are: a, b, c, d, e"
