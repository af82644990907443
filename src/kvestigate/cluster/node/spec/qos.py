"""The quality-of-service class of a pod. Pure."""

from __future__ import annotations

from kvestigate.cluster.node.spec.pod import PodSpec
from kvestigate.kube import quantities
from kvestigate.kube.views.pods import ResourceRequirements

_COUNTED = ("cpu", "memory")


def qos_class(spec: PodSpec) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`, by the CPU and memory asked for."""
    asked = [one.resources for one in (*spec.containers, *spec.init_containers)]
    if spec.resources is not None:
        asked = [spec.resources]
    if not any(_positive(one.requests) or _positive(one.limits) for one in asked):
        return "BestEffort"
    return "Guaranteed" if all(_guaranteed(one) for one in asked) else "Burstable"


def _positive(amounts: dict[str, str]) -> bool:
    return any(quantities.parse(amounts[name]) for name in _COUNTED if name in amounts)


def _guaranteed(resources: ResourceRequirements) -> bool:
    for name in _COUNTED:
        limit = resources.limits.get(name)
        if limit is None or not quantities.parse(limit):
            return False
        request = resources.requests.get(name)
        if request is not None and quantities.parse(request) != quantities.parse(limit):
            return False
    return True
