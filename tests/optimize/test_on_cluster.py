"""Plans are made and carried out on any API server, real Kubernetes among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.command_line import kvestigate
from tests.conftest import Cluster
from tests.snapshot.objects import container, node
from tests.upstream.judge import Judge

FLAGS = ("--apply", "--i-understand-this-disrupts-workloads", "--grace-period", "0")
OWNER = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "name": "web",
    "uid": "00000000-0000-4000-8000-000000000000",
    "controller": True,
}


def answered(kubeconfig: Path, *args: str) -> tuple[int, Any]:
    done = kvestigate(kubeconfig, *args, "-o", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def create_node(judge: Judge, name: str) -> None:
    body = node(name, cpu="8", memory="32Gi", pods="110", gpu="8")
    judge.post("/api/v1/nodes", {"metadata": {"name": name}})
    judge.merge(f"/api/v1/nodes/{name}/status", {"status": body["status"]})
    judge.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


def create_pod(judge: Judge, namespace: str, name: str, on: str, **spec: Any) -> None:
    asked = container(cpu="1", gpu="1")
    asked["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    owners = spec.pop("owners", [OWNER])
    pods = f"/api/v1/namespaces/{namespace}/pods"
    judge.post(
        pods,
        {
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"nodeName": on, "containers": [asked], **spec},
        },
    )
    judge.merge(f"{pods}/{name}/status", {"status": {"phase": "Running"}})


def create_stateful_set(judge: Judge, namespace: str, replicas: int) -> list[dict[str, Any]]:
    """The owner references of its pods, which nobody makes here but the test."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
    made = judge.post(
        f"/apis/apps/v1/namespaces/{namespace}/statefulsets",
        {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": replicas,
                "serviceName": "web",
                "selector": {"matchLabels": labels},
                "template": template,
            },
        },
    )
    return [{**OWNER, "uid": made["metadata"]["uid"]}]


def test_a_donor_that_cannot_become_empty_is_not_touched(
    cluster: Cluster, judge: Judge, namespace: str
) -> None:
    config = cluster.admin_kubeconfig()
    thin, half = f"{namespace}-a", f"{namespace}-z"
    for name in (thin, half):
        create_node(judge, name)
    owners = create_stateful_set(judge, namespace, 9)
    create_pod(judge, namespace, "web-0", thin, owners=owners)
    create_pod(judge, namespace, "bare", thin, owners=[])
    for number in range(1, 5):
        create_pod(judge, namespace, f"web-{number}", half, owners=owners)

    code, planned = answered(config, "optimize", "plan", "--live")
    assert (code, planned["moves"], planned["drained"]) == (0, [], [])
    assert {it["pod"]: it["reason"] for it in planned["held"] if it["node"] == thin} == {
        "bare": "no controller recreates it: it would be gone for good",
        "web-0": f"{thin} cannot become empty",
    }
    code, done = answered(config, "optimize", "apply", "--live", *FLAGS)
    assert (code, done["steps"]) == (0, [])
    assert "unschedulable" not in judge.get(f"/api/v1/nodes/{thin}")["spec"]


def test_a_plan_that_stops_says_so_and_opens_the_nodes_again(
    cluster: Cluster, judge: Judge, namespace: str
) -> None:
    """Nobody makes new pods here: the first eviction is the last."""
    config = cluster.admin_kubeconfig()
    thin, half = f"{namespace}-a", f"{namespace}-z"
    for name in (thin, half):
        create_node(judge, name)
    owners = create_stateful_set(judge, namespace, 9)
    for number, where in enumerate((thin, thin, half, half, half, half)):
        create_pod(judge, namespace, f"web-{number}", where, owners=owners)

    waves = ("--wave-size", "1", "--timeout", "1s")
    code, done = answered(config, "optimize", "apply", "--live", *waves, *FLAGS)
    assert (code, done["stopped"], done["emptied"]) == (6, "new pods were not placed in time", [])
    assert [(it["pod"], it["outcome"]) for it in done["steps"]] == [
        ("web-0", "gone"),
        ("web-1", "not asked"),
    ]
    for name in (thin, half):
        assert "unschedulable" not in judge.get(f"/api/v1/nodes/{name}")["spec"]
