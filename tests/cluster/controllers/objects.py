"""Objects for tests of controllers: as short as a manifest can be."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def template(image: str = "web:1", app: str = "web", **spec: Any) -> Object:
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec},
    }


def deployment(name: str = "web", replicas: int = 3, image: str = "web:1", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(image, name),
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "progressDeadlineSeconds": 600,
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def replica_set(name: str = "web", replicas: int = 3) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(app=name),
        },
    }


def replication_controller(name: str = "web", replicas: int = 3) -> Object:
    spec = {"replicas": replicas, "selector": {"app": name}, "template": template(app=name)}
    return {"metadata": {"name": name}, "spec": spec}


def job(name: str = "work", *, image: str = "work:1", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "template": template(image, name, restartPolicy="Never"),
            **spec,
        },
    }


def stateful_set(name: str = "db", replicas: int = 3, image: str = "db:1", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": template(image, name),
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def daemon_set(name: str = "agent", image: str = "agent:1", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template(image, name),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "revisionHistoryLimit": 10,
            **spec,
        },
    }


def node(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def service(name: str = "web", **spec: Any) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": ports, **spec},
    }
