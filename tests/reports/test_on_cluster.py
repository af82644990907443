"""An audit of a real API server, with totals counted another way."""

from __future__ import annotations

import json
from typing import Any

from tests.command_line import kvestigate
from tests.conftest import Cluster
from tests.snapshot.objects import container, node
from tests.upstream.judge import Judge


def load(judge: Judge, namespace: str) -> None:
    """Three nodes with four GPUs each, and five pods of one GPU on the first two."""
    for number in range(3):
        body = node(f"{namespace}-n{number}", cpu="8", memory="32Gi", pods="110", gpu="4")
        judge.post("/api/v1/nodes", body)
    for number in range(5):
        asked: dict[str, Any] = container(cpu="1500m", gpu="1")
        asked["resources"]["limits"] = {"nvidia.com/gpu": "1"}
        spec = {"nodeName": f"{namespace}-n{number % 2}", "containers": [asked]}
        judge.post(
            f"/api/v1/namespaces/{namespace}/pods",
            {"metadata": {"name": f"p{number}"}, "spec": spec},
        )


def test_an_audit_adds_up(cluster: Cluster, judge: Judge, namespace: str) -> None:
    load(judge, namespace)
    selector = {"selector": {"app": "nobody"}, "ports": [{"port": 80}]}
    services = f"/api/v1/namespaces/{namespace}/services"
    judge.post(services, {"metadata": {"name": "empty"}, "spec": selector})
    done = kvestigate(cluster.admin_kubeconfig(), "audit", "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    audit = json.loads(done.stdout)
    mine = [it for it in audit["reports"]["nodes"]["nodes"] if it["name"].startswith(namespace)]
    assert [it["cpu_millis"]["requested"] for it in mine] == [4500, 3000, 0]
    assert [it["gpus"] for it in mine] == [
        {"requested": count, "allocatable": 4} for count in (3, 2, 0)
    ]
    consumers = audit["reports"]["gpu"]["consumers"]
    assert sum(it["amount"] for it in consumers if it["namespace"] == namespace) == 5
    found = [it for it in audit["findings"] if it["subject"]["namespace"] == namespace]
    assert [(it["rule"], it["subject"]["name"]) for it in found] == [
        ("service-without-endpoints", "empty")
    ]
    assert {it["resource"] for it in audit["gaps"]} == {
        "nodes.metrics.k8s.io",
        "pods.metrics.k8s.io",
    }


def test_someone_without_rights_is_told_what_is_missing(cluster: Cluster, namespace: str) -> None:
    config = cluster.admin_kubeconfig()
    done = kvestigate(config, "audit", "--as", "stranger", "-o", "json")
    assert (done.returncode, done.stderr) == (4, "")
    gaps = {it["resource"]: it for it in json.loads(done.stdout)["gaps"]}
    assert (gaps["pods"]["verb"], gaps["pods"]["cause"]) == ("list", "denied")
    assert 'User "stranger" cannot list resource "pods"' in gaps["pods"]["message"]


def test_pods_and_objects_of_any_kind(cluster: Cluster, judge: Judge, namespace: str) -> None:
    load(judge, namespace)
    config = cluster.admin_kubeconfig()
    pods = json.loads(kvestigate(config, "pods", "-n", namespace, "-o", "json").stdout)["pods"]
    assert [(it["name"], it["status"], it["containers"]) for it in pods] == [
        (f"p{number}", "Pending", 1) for number in range(5)
    ]
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    judge.post(secrets, {"metadata": {"name": "pw"}, "stringData": {"password": "hunter2"}})
    shown = kvestigate(config, "describe", "secret", "pw", "-n", namespace).stdout
    assert "(7 bytes)" in shown
    assert "hunter2" not in shown
    assert "aHVudGVyMg" not in shown
    described = kvestigate(config, "describe", "node", f"{namespace}-n0").stdout
    assert "nvidia.com/gpu" in described
    assert "4500m" in described
