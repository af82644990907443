"""A small application with one fault of each kind that a cluster shows by itself."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def deployment(name: str, replicas: int, script: str, **resources: Any) -> Object:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", script],
        "resources": resources,
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": name}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def service(name: str, app: str) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"app": app}, "ports": [{"port": 80}]},
    }


BACKEND = {"service": {"name": "gone", "port": {"number": 80}}}
PATHS = {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}
REQUESTS = {"requests": {"cpu": "10m", "memory": "8Mi"}}
TOO_MUCH = {"requests": {"cpu": "5000"}}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "missing",
    "resources": {"requests": {"storage": "1Gi"}},
}

TALKER = "trap 'echo later' USR1; echo $$$$; while :; do sleep 10000 & wait; done"
"""Says its process id, and a word for each signal; `$$$$` because Kubernetes halves it."""

OBJECTS: tuple[tuple[str, Object], ...] = (
    ("deployments", deployment("web", 2, "echo hello; exec sleep 10000", **REQUESTS)),
    ("deployments", deployment("crash", 1, "echo about to fail; exit 3", **REQUESTS)),
    ("deployments", deployment("huge", 1, "true", **TOO_MUCH)),
    (
        "pods",
        {
            "metadata": {"name": "talker"},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "busybox",
                        "command": ["sh", "-c", TALKER],
                        "resources": REQUESTS,
                    }
                ]
            },
        },
    ),
    ("services", service("web", "web")),
    ("services", service("nobody", "wbe")),
    (
        "ingresses",
        {"metadata": {"name": "front"}, "spec": {"rules": [{"host": "x.test", "http": PATHS}]}},
    ),
    (
        "networkpolicies",
        {
            "metadata": {"name": "idle"},
            "spec": {"podSelector": {"matchLabels": {"app": "none"}}, "policyTypes": ["Ingress"]},
        },
    ),
    ("persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": CLAIM}),
    (
        "poddisruptionbudgets",
        {
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        },
    ),
    ("secrets", {"metadata": {"name": "pw"}, "stringData": {"password": "hunter2"}}),
)

FAULTS = {
    ("crash-loop", "Deployment", "crash"),
    ("pending", "Deployment", "huge"),
    ("service-without-endpoints", "Service", "nobody"),
    ("ingress-backend", "Ingress", "front"),
    ("ingress-class", "Ingress", "front"),
    ("policy-selects-nothing", "NetworkPolicy", "idle"),
    ("claim-unbound", "PersistentVolumeClaim", "data"),
    ("budget-blocks-drain", "PodDisruptionBudget", "web"),
}
"""Rule, kind, and the first word of the name."""
