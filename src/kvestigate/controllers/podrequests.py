"""What a pod asks for in all: containers beside each other, init containers in turn. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvestigate.kube.quantities import ZERO, Quantity, parse
from kvestigate.kube.views.pods import Container, Pod

Amounts = dict[str, Quantity]
_Read = Callable[[Container], Mapping[str, str]]


def requests(pod: Pod) -> Amounts:
    return _total(pod, lambda it: it.resources.requests)


def limits(pod: Pod) -> Amounts:
    return _total(pod, lambda it: it.resources.limits)


def _total(pod: Pod, read: _Read) -> Amounts:
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
    return added(whole, pod.spec.overhead)


def added(amounts: Amounts, more: Mapping[str, str]) -> Amounts:
    return _sum(amounts, {name: parse(value) for name, value in more.items()})


def _sum(left: Amounts, right: Amounts) -> Amounts:
    return {
        name: left.get(name, ZERO) + right.get(name, ZERO)
        for name in dict.fromkeys((*left, *right))
    }
