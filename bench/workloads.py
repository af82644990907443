"""The Deployments that collectors are measured with."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def deployment(index: int) -> Json:
    labels = {"app.kubernetes.io/name": "serving", "app.kubernetes.io/instance": f"{index}"}
    return {
        "metadata": {"name": f"serving-{index:03}", "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "initContainers": [_container("fetch", f"fetch:{index % 7}", gpus=0)],
                    "containers": [
                        _container("server", f"serving:{index % 9}", gpus=1),
                        _container("istio-proxy", "istio/proxyv2:1.27", gpus=0),
                    ],
                    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
                    "volumes": [
                        {"name": "models", "emptyDir": {}},
                        {"name": "settings", "configMap": {"name": "settings"}},
                    ],
                },
            },
        },
    }


def _container(name: str, image: str, *, gpus: int) -> Json:
    resources: Json = {"cpu": "500m", "memory": "2Gi"}
    if gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    return {
        "name": name,
        "image": f"registry.example.com/{image}",
        "args": ["--port=8080", "--models=/models", "--log-level=info"],
        "env": [{"name": f"SETTING_{number}", "value": f"value {number}"} for number in range(8)],
        "ports": [{"containerPort": 8080}],
        "resources": {"requests": resources, "limits": resources},
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
