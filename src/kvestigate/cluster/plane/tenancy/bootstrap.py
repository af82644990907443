"""What every plane starts with. Pure: the same for all, so that they share it."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Any

from kvestigate.cluster.plane.access.authz.default_roles import default_roles
from kvestigate.cluster.plane.kinds.access.rbac import GROUP
from kvestigate.cluster.plane.kinds.priority_classes import SYSTEM
from kvestigate.cluster.plane.kinds.registry import builtin
from kvestigate.cluster.plane.model import metadata, objects
from kvestigate.cluster.plane.model.kind import Object
from kvestigate.cluster.plane.store.model import Put
from kvestigate.cluster.plane.store.state import PlaneState, assemble

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = ("scheduling.k8s.io", "v1", "priorityclasses")
_CRITICAL = (
    ("system-cluster-critical", "For what the cluster needs somewhere, on whichever node."),
    ("system-node-critical", "For what a node needs and cannot get from another node."),
)


@lru_cache(maxsize=16)
def template(now: float) -> PlaneState:
    """The state of a new plane."""
    source = Random("kvestigate")
    return assemble([_put(*each, now=now, source=source) for each in _objects()])


def _objects() -> list[tuple[tuple[str, str, str], str, Object]]:
    """((group, version, plural), namespace, object)"""
    accounts = ("", "v1", "serviceaccounts")
    return [
        *((("", "v1", "namespaces"), "", _namespace(name)) for name in NAMESPACES),
        *((accounts, name, {"metadata": {"name": "default"}}) for name in NAMESPACES),
        (("", "v1", "services"), "default", _kubernetes_service()),
        *((_PRIORITIES, "", _priority_class(*each)) for each in _CRITICAL),
        *(((GROUP, "v1", plural), where, obj) for plural, where, obj in default_roles()),
    ]


def _put(
    address: tuple[str, str, str], namespace: str, obj: Object, *, now: float, source: Random
) -> Put:
    kind = builtin()[address]
    metadata.begin(obj, kind, namespace, now, source)
    return objects.put(obj, kind, expect=0)


def _namespace(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _priority_class(name: str, description: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "value": SYSTEM[name],
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _kubernetes_service() -> dict[str, Any]:
    return {
        "metadata": {
            "name": "kubernetes",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }
