"""What every plane starts with. Pure: the same for all, so that they share it."""

from __future__ import annotations

from random import Random
from typing import Any

from kvestigate.plane import metadata, objects
from kvestigate.plane.kinds.kind import Object
from kvestigate.plane.kinds.registry import builtin
from kvestigate.plane.store.model import Put
from kvestigate.plane.store.state import PlaneState
from kvestigate.plane.store.transition import assemble

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


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
