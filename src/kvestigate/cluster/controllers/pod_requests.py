"""What a pod asks for in all: containers beside each other, init containers in turn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvestigate.kube.quantities import ZERO, Quantity, parse
from kvestigate.kube.views.pods import Container, Pod

Amounts = dict[str, Quantity]
_Read = Callable[[Container], Mapping[str, str]]


def requests(pod: Pod) -> Amounts:
    whole = {} if pod.spec.resources is None else pod.spec.resources.requests
    return added(
        _total(pod, lambda container: container.resources.requests, whole), pod.spec.overhead
    )


def limits(pod: Pod) -> Amounts:
    whole = {} if pod.spec.resources is None else pod.spec.resources.limits
    total = _total(pod, lambda item: item.resources.limits, whole)
    # A pod without a limit stays without one.
    return added(total, {name: item for name, item in pod.spec.overhead.items() if name in total})


def states_requests(pod: Pod) -> bool:
    """Whether a pod says what it asks for as a whole."""
    return pod.spec.resources is not None and any(map(_is_shared, pod.spec.resources.requests))


def _is_shared(resource: str) -> bool:
    """Whether the containers of a pod can have it from one pool."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _total(pod: Pod, read: _Read, stated: Mapping[str, str]) -> Amounts:
    running: Amounts = {}
    for container in pod.spec.containers:
        running = added(running, read(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            sidecars = added(sidecars, read(container))
            now = sidecars
        else:
            now = added(sidecars, read(container))
        peak = {name: max(peak.get(name, ZERO), now.get(name, ZERO)) for name in {*peak, *now}}
    whole = _sum(running, sidecars)
    whole = {name: max(whole.get(name, ZERO), peak.get(name, ZERO)) for name in {*whole, *peak}}
    return whole | {name: parse(value) for name, value in stated.items() if _is_shared(name)}


def added(amounts: Amounts, more: Mapping[str, str]) -> Amounts:
    return _sum(amounts, {name: parse(value) for name, value in more.items()})


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {
        name: left.get(name, ZERO) + right.get(name, ZERO)
        for name in dict.fromkeys((*left, *right))
    }
