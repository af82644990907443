"""Fills an API server with nodes and pods, all of them created through its API."""

from __future__ import annotations

from typing import Any

from tests.upstream.crowd import Judged, everywhere
from tests.upstream.judge import Judge

Json = dict[str, Any]
NAMESPACES = 50
_STARTED = "2026-01-05T08:00:00Z"


def populate(cluster: Judged, *, nodes: int, pods: int) -> None:
    with cluster.judge() as judge:
        for index in range(NAMESPACES):
            name = namespace(index)
            judge.ensure("/api/v1/namespaces", {"metadata": {"name": name}})
            accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
            judge.ensure(accounts, {"metadata": {"name": "default"}})
    everywhere(cluster, nodes, _create_node)
    everywhere(cluster, pods, lambda judge, index: _create_pod(judge, index, nodes))


def namespace(index: int) -> str:
    return f"team-{index % NAMESPACES:03}"


def node_name(index: int) -> str:
    return f"node-{index:05}"


def pod_name(index: int) -> str:
    return f"serving-{index:06}"


def _create_node(judge: Judge, index: int) -> None:
    judge.post("/api/v1/nodes", node_body(index))
    judge.merge(f"/api/v1/nodes/{node_name(index)}/status", {"status": node_status(index)})


def node_body(index: int) -> Json:
    name = node_name(index)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "gpu-8x",
        "topology.kubernetes.io/zone": f"zone-{index % 3}",
    }
    return {"metadata": {"name": name, "labels": labels}, "spec": {}}


def node_status(index: int) -> Json:
    resources = {"cpu": "128", "memory": "1056Gi", "pods": "110", "nvidia.com/gpu": "8"}
    return {
        "capacity": resources,
        "allocatable": resources,
        "addresses": [{"type": "InternalIP", "address": f"10.{index // 250}.{index % 250}.1"}],
        "conditions": [_condition("Ready", reason="KubeletReady")],
        "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Debian GNU/Linux 13 (trixie)"},
    }


def _create_pod(judge: Judge, index: int, nodes: int) -> None:
    body = pod_body(index, nodes)
    path = f"/api/v1/namespaces/{namespace(index)}/pods"
    judge.post(path, body)
    judge.merge(f"{path}/{body['metadata']['name']}/status", {"status": pod_status(index)})


def pod_body(index: int, nodes: int) -> Json:
    """About 7 KB once the server has added defaults and managed fields."""
    return {
        "metadata": {
            "name": pod_name(index),
            "labels": {
                "app.kubernetes.io/name": "serving",
                "app.kubernetes.io/instance": f"serving-{index % 40}",
                "app.kubernetes.io/component": "decoder",
                "pod-template-hash": f"{index % 997:08x}",
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9090",
            },
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": f"serving-{index % 400}",
                    "uid": f"00000000-0000-4000-8000-{index % 400:012}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": node_name(index % nodes) if nodes else "",
            "terminationGracePeriodSeconds": 120,
            "containers": [_container("server", gpus=index % 3), _container("proxy", gpus=0)],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "volumes": [
                {"name": "models", "hostPath": {"path": "/var/lib/models", "type": "Directory"}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "20Gi"}},
            ],
        },
    }


def _container(name: str, *, gpus: int) -> Json:
    resources: Json = {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "4Gi"}}
    if gpus:
        resources["requests"]["nvidia.com/gpu"] = str(gpus)
        resources["limits"]["nvidia.com/gpu"] = str(gpus)
    container: Json = {
        "name": name,
        "image": f"registry.example/serving/{name}:2026.1",
        "command": [f"/usr/bin/{name}", "--config=/etc/serving/config.yaml", "--port=8000"],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "resources": resources,
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    if name == "server":
        container["ports"] = [{"containerPort": 8000, "name": "http"}]
        container["readinessProbe"] = {"httpGet": {"path": "/ready", "port": 8000}}
    return container


def pod_status(index: int) -> Json:
    address = f"10.{100 + index // 62_500}.{index // 250 % 250}.{index % 250 + 1}"
    statuses = [_container_status(name, index) for name in ("server", "proxy")]
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _STARTED,
        "conditions": [
            _condition(type_)
            for type_ in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": statuses,
    }


def _container_status(name: str, index: int) -> Json:
    return {
        "name": name,
        "image": f"registry.example/serving/{name}:2026.1",
        "imageID": f"registry.example/serving/{name}@sha256:{index % 7:064x}",
        "containerID": f"containerd://{index:064x}",
        "ready": True,
        "started": True,
        "restartCount": index % 5,
        "state": {"running": {"startedAt": _STARTED}},
    }


def _condition(type_: str, reason: str | None = None) -> Json:
    condition = {"type": type_, "status": "True", "lastTransitionTime": _STARTED}
    return condition | {"reason": reason} if reason else condition


def workload(index: int) -> dict[str, Json]:
    """A Deployment and its Service, by the names of their resources."""
    name, labels = f"serving-{index}", {"app.kubernetes.io/instance": f"serving-{index % 40}"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "server", "image": "registry.example/serving:2026.1"}]},
    }
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    ports = [{"name": "http", "port": 80, "targetPort": 8000}]
    return {
        "deployments": {"metadata": {"name": name}, "spec": spec},
        "services": {"metadata": {"name": name}, "spec": {"selector": labels, "ports": ports}},
    }
