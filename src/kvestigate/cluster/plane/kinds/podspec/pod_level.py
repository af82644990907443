"""Requests of the pod as a whole, from those of its containers. Pure."""

from __future__ import annotations

from typing import Any

from kvestigate.cluster.plane.kinds.resource_names import is_huge_page
from kvestigate.kube import quantities
from kvestigate.kube.quantities import ZERO, Quantity

Object = dict[str, Any]
Amounts = dict[str, Quantity]


def default_pod_level(spec: Object) -> None:
    """Default pod-level requests: the sum of the containers' requests, else the pod's limits."""
    resources = spec["resources"]
    limits = resources.get("limits")
    if not limits:
        return
    requests = dict(resources.get("requests") or {})
    for name, amount in needed(spec, "requests").items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, str(amount))
    for name, amount in limits.items():
        if name in ("cpu", "memory") or is_huge_page(name):
            requests.setdefault(name, amount)
    if requests:
        resources["requests"] = requests


def needed(spec: Object, what: str) -> Amounts:
    """The requests or limits of all containers at once: init containers run before the others,
    sidecars stay."""
    total: Amounts = {}
    for container in spec["containers"] or ():
        _add(total, _amounts(container, what))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _amounts(container, what)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        for name, amount in own.items():
            peak[name] = max(peak.get(name, ZERO), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, ZERO), amount)
    return total


def _amounts(container: Object, what: str) -> Amounts:
    amounts = container["resources"].get(what) or {}
    return {name: quantities.parse(amount) for name, amount in amounts.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount
