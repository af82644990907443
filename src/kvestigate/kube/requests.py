"""What a pod counts for on a node: cpu in thousandths, everything else in whole units. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from kvestigate.kube import quantities
from kvestigate.kube.views.pods import ResourceRequirements

Amounts = dict[str, int]


class Container(Protocol):
    """What any view of a container has that reads what it asks for."""

    @property
    def resources(self) -> ResourceRequirements: ...

    @property
    def restart_policy(self) -> str: ...


class PodSpec(Protocol):
    @property
    def containers(self) -> Iterable[Container]: ...

    @property
    def init_containers(self) -> Iterable[Container]: ...

    @property
    def resources(self) -> ResourceRequirements | None: ...

    @property
    def overhead(self) -> Mapping[str, str]: ...


CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

# Pods that ask for nothing still use something: scores take them for this much.
ASSUMED: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 1024 * 1024}

_NOTHING: Mapping[str, int] = {}


def amounts(written: Mapping[str, str]) -> Amounts:
    """Quantities of an object as numbers."""
    return {
        name: quantities.millis(text) if name == CPU else quantities.whole(text)
        for name, text in written.items()
    }


def requests_of(spec: PodSpec, assumed: Mapping[str, int] = _NOTHING) -> Amounts:
    """What the pod needs at its neediest moment; `assumed` for containers that do not say."""
    total = _running(spec.containers, assumed)
    _raise_to(total, _starting(spec.init_containers, total, assumed))
    if spec.resources is not None:
        for name, amount in amounts(spec.resources.requests).items():
            if name in (CPU, MEMORY) or name.startswith("hugepages-"):
                total[name] = amount
    _add(total, amounts(spec.overhead))
    return total


def _running(containers: Iterable[Container], assumed: Mapping[str, int]) -> Amounts:
    total: Amounts = {}
    for container in containers:
        _add(total, _of(container, assumed))
    return total


def _starting(
    containers: Iterable[Container], running: Amounts, assumed: Mapping[str, int]
) -> Amounts:
    """The most that init containers need at a time; sidecars are added to `running` too."""
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in containers:
        own = _of(container, assumed)
        if container.restart_policy == "Always":
            _add(running, own)
            _add(sidecars, own)
            _raise_to(peak, sidecars)
        else:
            _add(own, sidecars)
            _raise_to(peak, own)
    return peak


def _of(container: Container, assumed: Mapping[str, int]) -> Amounts:
    return {**assumed, **amounts(container.resources.requests)}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount
