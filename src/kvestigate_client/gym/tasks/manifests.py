"""The manifests that tasks are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvestigate_client.results import Object


def named(api_version: str, kind: str, name: str, namespace: str = "") -> Object:
    """What names an object, and nothing else."""
    metadata = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def deployment(
    name: str,
    *,
    replicas: int = 1,
    requests: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    container: Mapping[str, Any] | None = None,
    pod: Mapping[str, Any] | None = None,
) -> Object:
    main: dict[str, Any] = {"name": "main", "image": "app:1", **(container or {})}
    resources = {
        key: dict(value) for key, value in (("requests", requests), ("limits", limits)) if value
    }
    if resources:
        main["resources"] = resources
    labels = {"app": name}
    return named("apps/v1", "Deployment", name, "default") | {
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [main], **(pod or {})},
            },
        }
    }


def service(name: str, selector: Mapping[str, str], *, type: str = "ClusterIP") -> Object:
    spec = {"type": type, "selector": dict(selector), "ports": [{"port": 80}]}
    return named("v1", "Service", name, "default") | {"spec": spec}


def node(name: str, *, gpus: int = 0, labels: Mapping[str, str] | None = None) -> Object:
    """A node that is simulated, with this capacity."""
    capacity = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    if gpus:
        capacity["nvidia.com/gpu"] = str(gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def gpu_deployment(name: str, gpus: int, *, replicas: int = 1, on: str = "") -> Object:
    """Pods that want GPUs, maybe of one node."""
    pod = {"nodeSelector": {"kubernetes.io/hostname": on}} if on else {}
    return deployment(name, replicas=replicas, limits={"nvidia.com/gpu": str(gpus)}, pod=pod)


def claim(name: str) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "100Gi"}},
        "storageClassName": "manual",
    }
    return named("v1", "PersistentVolumeClaim", name, "default") | {"spec": spec}


def cluster_binding(name: str, role: str, account: str) -> Object:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    return named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name) | {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
