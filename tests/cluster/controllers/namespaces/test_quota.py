"""What a quota counts."""

from __future__ import annotations

from typing import Any

import pytest

from kvestigate.cluster.controllers.namespaces.quota import Usage, decide
from kvestigate.cluster.controllers.objects import ResourceQuota
from kvestigate.kube.views.network import Service
from kvestigate.kube.views.pods import Pod
from kvestigate.kube.views.storage import PersistentVolumeClaim
from tests.cluster.controllers.builders import pod, view


def asking(name: str, phase: str = "Running", spec: Any = None, **resources: Any) -> Pod:
    container = {"name": "main", "resources": resources}
    return pod(name, phase, spec={"containers": [container], **(spec or {})})


BIG: dict[str, Any] = {
    "requests": {"cpu": "1500m", "memory": "1Gi"},
    "limits": {"nvidia.com/gpu": "2"},
}
USAGE = Usage(
    pods=[
        asking("a", **BIG),
        asking("b", requests={"cpu": "500m"}),
        asking("c"),
        asking("done", "Succeeded", **BIG),
        asking("late", spec={"activeDeadlineSeconds": 5, "priorityClassName": "high"}),
    ],
    claims=[
        view(
            PersistentVolumeClaim,
            "disk",
            spec={"storageClassName": "fast", "resources": {"requests": {"storage": "3Gi"}}},
        )
    ],
    services=[view(Service, "web", spec={"type": "LoadBalancer", "ports": [{"port": 80}]})],
    counts={"pods": 5, "secrets": 2, "deployments.apps": 3},
)


@pytest.mark.parametrize(
    ("name", "used"),
    [
        ("pods", "4"),
        ("count/pods", "5"),
        ("requests.cpu", "2"),
        ("cpu", "2"),
        ("memory", "1Gi"),
        ("limits.nvidia.com/gpu", "2"),
        ("requests.nvidia.com/gpu", "0"),
        ("secrets", "2"),
        ("configmaps", "0"),
        ("count/deployments.apps", "3"),
        ("requests.storage", "3Gi"),
        ("persistentvolumeclaims", "1"),
        ("fast.storageclass.storage.k8s.io/requests.storage", "3Gi"),
        ("slow.storageclass.storage.k8s.io/persistentvolumeclaims", "0"),
        ("services", "1"),
        ("services.loadbalancers", "1"),
        ("services.nodeports", "1"),
    ],
)
def test_usage(name: str, used: str) -> None:
    it = view(ResourceQuota, "q", spec={"hard": {name: "10"}})
    status = decide(it, USAGE)
    assert status.used == {name: used}
    assert status.hard == {name: "10"}


@pytest.mark.parametrize(
    ("spec", "pods"),
    [
        ({"scopes": ["BestEffort"]}, "2"),
        ({"scopes": ["NotBestEffort"]}, "2"),
        ({"scopes": ["Terminating"]}, "1"),
        ({"scopes": ["NotTerminating", "BestEffort"]}, "1"),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
                    ]
                }
            },
            "1",
        ),
    ],
)
def test_scopes(spec: Any, pods: str) -> None:
    it = view(ResourceQuota, "q", spec={"hard": {"pods": "10"}, **spec})
    assert decide(it, USAGE).used == {"pods": pods}


def test_init_containers_count_where_they_need_more() -> None:
    def container(cpu: str, **more: str) -> dict[str, Any]:
        return {"name": "x", "resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1")],
        "initContainers": [container("500m", restartPolicy="Always"), container("2")],
        "overhead": {"cpu": "100m"},
    }
    it = view(ResourceQuota, "q", spec={"hard": {"cpu": "10"}})
    assert decide(it, Usage(pods=[pod("a", spec=spec)])).used == {"cpu": "2600m"}


def test_what_is_said_of_a_pod_as_a_whole() -> None:
    whole = {"resources": {"requests": {"cpu": "3"}, "limits": {"memory": "2Gi"}}}
    usage = Usage(pods=[asking("a", spec=whole, **BIG), asking("b", spec=whole)])
    hard = {"requests.cpu": "10", "requests.memory": "9Gi", "limits.memory": "9Gi"}
    status = decide(view(ResourceQuota, "q", spec={"hard": hard}), usage)
    assert status.used == {"requests.cpu": "6", "requests.memory": "1Gi", "limits.memory": "4Gi"}
    overhead = Usage(pods=[asking("a", spec={"overhead": {"cpu": "1", "memory": "1Gi"}}, **BIG)])
    status = decide(view(ResourceQuota, "q", spec={"hard": hard}), overhead)
    assert status.used == {"requests.cpu": "2500m", "requests.memory": "2Gi", "limits.memory": "0"}
    scoped = {"hard": {"pods": "10"}, "scopes": ["NotBestEffort"]}
    assert decide(view(ResourceQuota, "q", spec=scoped), usage).used == {"pods": "2"}
