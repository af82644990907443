"""Requests and limits of containers and pods. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from kvestigate.cluster.plane.kinds import resource_names
from kvestigate.cluster.plane.kinds.checks import label
from kvestigate.cluster.plane.kinds.podspec import pod_level
from kvestigate.errors import InputError
from kvestigate.kube import causes, quantities
from kvestigate.kube.causes import Cause, Causes

Object = dict[str, Any]
CheckName = Callable[[str, str], Causes]


def validate_container_resources(path: str, resources: Object, claims: frozenset[str]) -> Causes:
    yield from _requirements(path, resources, resource_names.validate_container_name)
    if "claims" in resources:
        yield from _claims(f"{path}.claims", resources["claims"], claims)


def validate_pod_resources(path: str, spec: Object, claims: frozenset[str]) -> Causes:
    resources = spec["resources"]
    if "claims" in resources:
        yield causes.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    yield from _requirements(path, resources, resource_names.validate_pod_name)
    if "claims" in resources:
        yield from _claims(f"{path}.claims", resources["claims"], claims)
    yield from _consistency(path, spec)


def _consistency(path: str, spec: Object) -> Causes:
    """The containers of a pod fit into what the pod as a whole has."""
    own = spec["resources"]
    for name, total in pod_level.needed(spec, "requests").items():
        request = (own.get("requests") or {}).get(name)
        if request is not None and total > quantities.parse(request):
            why = f"must be greater than or equal to aggregate container requests of {total}"
            yield causes.invalid(f"{path}.requests[{name}]", request, why)
    limits = own.get("limits") or {}
    for name, total in pod_level.needed(spec, "limits").items():
        huge = name in limits and resource_names.is_huge_page(name)
        if huge and total > quantities.parse(limits[name]):
            why = f"must be greater than or equal to aggregate container limits of {total}"
            yield causes.invalid(f"{path}.limits[{name}]", limits[name], why)
    for index, container in enumerate(spec["containers"] or ()):
        for name, limit in (container["resources"].get("limits") or {}).items():
            if name in limits and _compared(limit, limits[name]) > 0:
                why = f"must be less than or equal to pod limits of {limits[name]}"
                yield causes.invalid(f"{path}.containers[{index}][{name}].limits", limit, why)


def _requirements(path: str, resources: Object, check_name: CheckName) -> Causes:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, amount in limits.items():
        if not _fine(name, amount, check_name):
            yield from _misfits(f"{path}.limits[{name}]", name, amount, check_name)
    for name, amount in requests.items():
        if not _fine(name, amount, check_name):
            yield from _misfits(f"{path}.requests[{name}]", name, amount, check_name)
        if name in limits:
            if amount != limits[name]:
                yield from _within(f"{path}.requests", name, amount, limits[name])
        elif not resource_names.overcommits(name):
            why = "Limit must be set for non overcommitable resources"
            yield causes.required(f"{path}.limits", why)
    if "cpu" not in requests and "cpu" not in limits:
        named = {*limits, *requests}
        if "memory" not in named and any(map(resource_names.is_huge_page, named)):
            yield causes.forbidden(path, "HugePages require cpu or memory")


# The same few amounts are asked for again and again, and nearly all of them are fine.
@lru_cache(maxsize=8192)
def _fine(name: str, amount: str, check_name: CheckName) -> bool:
    return not any(_misfits("", name, amount, check_name))


@lru_cache(maxsize=8192)
def _compared(left: str, right: str) -> int:
    """Negative, zero or positive, as the left amount is less, equal or more."""
    return quantities.parse(left).nanos - quantities.parse(right).nanos


def _misfits(path: str, name: str, amount: str, check_name: CheckName) -> Iterator[Cause]:
    yield from check_name(path, name)
    yield from resource_names.validate_amount(path, name, amount)
    if resource_names.is_huge_page(name) and not _divisible(name, amount):
        yield causes.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")


def _within(path: str, name: str, request: str, limit: str) -> Causes:
    order = _compared(request, limit)
    if order and not resource_names.overcommits(name):
        yield causes.invalid(path, request, f"must be equal to {name} limit of {limit}")
    elif order > 0:
        why = f"must be less than or equal to {name} limit of {limit}"
        yield causes.invalid(path, request, why)


def _divisible(name: str, amount: str) -> bool:
    try:
        page = quantities.whole(name.removeprefix(resource_names.HUGE_PAGES))
    except InputError:
        return False
    return page > 0 and quantities.whole(amount) % page == 0


def _claims(path: str, claims: list[Object], known: frozenset[str]) -> Causes:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield causes.required(at)
            continue
        key = f"{name}/{request}" if request else name
        if request:
            yield from label(f"{at}.request", request)
        if name in seen or key in seen:
            yield causes.duplicate(at, name if name in seen else key)
        seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            why = f"must be one of the names in pod.spec.resourceClaims{listed}"
            yield causes.Cause("FieldValueNotFound", at, f'Not found: "{name}": {why}')
