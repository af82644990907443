"""The quality-of-service class of a pod: it follows from what its containers ask for. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.kube import quantities
from kvestigate.kube.quantities import ZERO, Quantity

Object = dict[str, Any]

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    if pod_level := spec.get("resources"):
        resources = [pod_level]
        guaranteed = not pod_level.get("limits") or len(_amounts(pod_level, "limits")) == 2
    else:
        containers = [*(spec["containers"] or ()), *(spec.get("initContainers") or ())]
        resources = [container["resources"] for container in containers]
        guaranteed = True
        for each in resources:
            limits = each.get("limits")
            if not limits or "cpu" not in limits or len(_amounts(each, "limits")) < len(_COUNTED):
                guaranteed = False
                break
    if not guaranteed:
        for each in resources:
            if _amounts(each, "requests") or _amounts(each, "limits"):
                return BURSTABLE
        return BEST_EFFORT
    requests, limits = _total(resources, "requests"), _total(resources, "limits")
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if requests == limits else BURSTABLE


def _total(levels: list[Object], kind: str) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for resources in levels:
        for name, amount in _amounts(resources, kind).items():
            total[name] = total.get(name, ZERO) + amount
    return total


def _amounts(resources: Object, kind: str) -> dict[str, Quantity]:
    amounts = resources.get(kind)
    if not amounts:
        return {}
    return {
        name: amount
        for name in _COUNTED
        if name in amounts and (amount := quantities.parse(amounts[name])).nanos > 0
    }
