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


def test_a_thin_node_is_emptied_but_for_what_could_not_come_back(
    cluster: Cluster, judge: Judge, namespace: str
) -> None:
    config = cluster.admin_kubeconfig()
    thin, half = f"{namespace}-a", f"{namespace}-z"
    for name in (thin, half):
        create_node(judge, name)
    create_pod(judge, namespace, "web-0", thin)
    create_pod(judge, namespace, "bare", thin, owners=[])
    for number in range(4):
        create_pod(judge, namespace, f"busy-{number}", half)

    code, planned = answered(config, "optimize", "plan", "--live")
    assert code == 0
    assert [(it["pod"], it["target"]) for it in planned["moves"]] == [
        ("bare", half),
        ("web-0", half),
    ]
    assert planned["drained"] == [thin]

    code, done = answered(config, "optimize", "apply", "--live", *FLAGS)
    assert {it["pod"]: (it["outcome"], it["reason"]) for it in done["steps"]} == {
        "bare": ("kept", "no controller would recreate it"),
        "web-0": ("gone", ""),
    }
    assert code == 6
    left = judge.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert sorted(it["metadata"]["name"] for it in left) == [
        "bare",
        *(f"busy-{number}" for number in range(4)),
    ]
    assert judge.get(f"/api/v1/nodes/{thin}")["spec"]["unschedulable"]
    assert "unschedulable" not in judge.get(f"/api/v1/nodes/{half}")["spec"]
