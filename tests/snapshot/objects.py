"""Objects as a server would send them, and as the reports see them."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.kube.views.core import Node
from kvestigate.snapshot.pods import Pod

Object = dict[str, Any]

READY = {"type": "Ready", "status": "True"}


def node(name: str, *, labels: Object | None = None, **allocatable: str) -> Object:
    """`node("a", cpu="8", gpu="4")`; underscores make no resource names, so GPUs are `gpu`."""
    offered = {"nvidia.com/gpu" if key == "gpu" else key: it for key, it in allocatable.items()}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {},
        "status": {"allocatable": offered, "capacity": offered, "conditions": [READY]},
    }


def container(name: str = "main", **requests: str) -> Object:
    asked = {"nvidia.com/gpu" if key == "gpu" else key: it for key, it in requests.items()}
    return {"name": name, "image": "app:1", "resources": {"requests": asked}}


def pod(
    name: str, *containers: Object, on: str = "", phase: str = "Running", **spec: Any
) -> Object:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": on, "containers": list(containers or (container(),)), **spec},
        "status": {"phase": phase},
    }


def as_node(body: Object) -> Node:
    return msgspec.convert(body, Node)


def as_pod(body: Object) -> Pod:
    return msgspec.convert(body, Pod)
