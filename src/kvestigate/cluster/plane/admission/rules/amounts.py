"""What a pod asks for in all, as limit ranges and quotas count it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from kvestigate.cluster.plane.model.kind import Object
from kvestigate.kube.quantities import ZERO, Quantity, parse

Amounts = dict[str, Quantity]


def amounts(resources: Object | None, kind: str) -> Amounts:
    """The `requests` or `limits` of a container or claim."""
    return {name: parse(text) for name, text in ((resources or {}).get(kind) or {}).items()}


def of_pod(spec: Object, kind: str) -> Amounts:
    """Containers run beside each other, init containers in turn, sidecars from their turn on."""
    running = _sum(amounts(each.get("resources"), kind) for each in spec["containers"] or ())
    sidecars: Amounts = {}
    peak: Amounts = {}
    for each in spec.get("initContainers") or ():
        own = amounts(each.get("resources"), kind)
        if each.get("restartPolicy") == "Always":
            sidecars = now = _sum((sidecars, own))
        else:
            now = _sum((sidecars, own))
        peak = _most(peak, now)
    total = _most(_sum((running, sidecars)), peak)
    total |= amounts(spec.get("resources"), kind)  # said of the pod as a whole
    overhead = {name: parse(text) for name, text in (spec.get("overhead") or {}).items()}
    if kind == "limits":  # a pod without a limit stays without one
        overhead = {name: amount for name, amount in overhead.items() if name in total}
    return _sum((total, overhead))


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, ZERO) + amount
    return total


def _most(left: Amounts, right: Amounts) -> Amounts:
    names = dict.fromkeys((*left, *right))
    return {name: max(left.get(name, ZERO), right.get(name, ZERO)) for name in names}
