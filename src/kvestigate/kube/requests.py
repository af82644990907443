"""What a pod counts for on a node: cpu in thousandths, everything else in whole units. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kvestigate.kube import quantities
from kvestigate.kube.views.pods import (
    CondensedContainer,
    CondensedPodSpec,
    Container,
    PodSpec,
    ResourceRequirements,
)

Amounts = dict[str, int]


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


def requests_of(spec: CondensedPodSpec, assumed: Mapping[str, int] = _NOTHING) -> Amounts:
    """What the pod needs at its neediest moment; `assumed` for containers that do not say."""
    total = _running(spec.containers, assumed)
    _raise_to(total, _starting(spec.init_containers, total, assumed))
    if spec.resources is not None:
        for name, amount in amounts(spec.resources.requests).items():
            if name in (CPU, MEMORY) or name.startswith("hugepages-"):
                total[name] = amount
    _add(total, amounts(spec.overhead))
    return total


def _running(containers: Iterable[CondensedContainer], assumed: Mapping[str, int]) -> Amounts:
    total: Amounts = {}
    for container in containers:
        _add(total, _of(container, assumed))
    return total


def _starting(
    containers: Iterable[CondensedContainer], running: Amounts, assumed: Mapping[str, int]
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


def _of(container: CondensedContainer, assumed: Mapping[str, int]) -> Amounts:
    return {**assumed, **amounts(container.resources.requests)}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Mapping[str, int]) -> None:
    for name, amount in least.items():
        if amount > total.get(name, 0):
            total[name] = amount


def with_default_requests(spec: PodSpec) -> PodSpec:
    """With the API server's default: a limit without a request is the request, too."""
    return msgspec.structs.replace(
        spec,
        containers=tuple(map(_with_default_requests, spec.containers)),
        init_containers=tuple(map(_with_default_requests, spec.init_containers)),
    )


def _with_default_requests(container: Container) -> Container:
    limits, requests = container.resources.limits, container.resources.requests
    if not limits:
        return container
    resources = ResourceRequirements(requests={**limits, **requests}, limits=limits)
    return msgspec.structs.replace(container, resources=resources)


_AMOUNTS = frozenset(("requests", "limits", "overhead"))


def with_text_quantities(value: Any) -> Any:
    """A copy with numbers among the amounts as text: people write `cpu: 1`, servers `"1"`."""
    if isinstance(value, list):
        return [with_text_quantities(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _as_text(inner)
        if key in _AMOUNTS and isinstance(inner, dict)
        else with_text_quantities(inner)
        for key, inner in value.items()
    }


def _as_text(amounts: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(amount)
        if isinstance(amount, int | float) and not isinstance(amount, bool)
        else amount
        for name, amount in amounts.items()
    }
