"""The allocation that is written into a claim: its devices, settings and nodes. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kvestigate.kube.devices.capacity import consumed
from kvestigate.kube.devices.pools import Candidate
from kvestigate.kube.views.devices import (
    AllocatedConfiguration,
    Allocation,
    DeviceAllocation,
    DeviceClass,
    DeviceResult,
    ResourceClaim,
    SubRequest,
)
from kvestigate.kube.views.placement import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A device that was chosen for a request."""

    name: str
    """`REQUEST` or `REQUEST/ALTERNATIVE`."""
    request: SubRequest
    candidate: Candidate


def allocation_of(
    claim: ResourceClaim, chosen: Sequence[Chosen], classes: Mapping[str, DeviceClass], node: str
) -> Allocation:
    results = tuple(map(_result, chosen))
    names = {each.name: each.request for each in chosen}
    config = (*_of_classes(names, classes), *_of_claim(claim, names))
    places = [each.candidate for each in chosen]
    return Allocation(DeviceAllocation(results, config), _nodes(places, node))


def _result(chosen: Chosen) -> DeviceResult:
    request, device = chosen.request, chosen.candidate.device
    shared = device.allow_multiple_allocations
    amounts = consumed(device, request.capacity) if shared else {}
    return DeviceResult(
        chosen.name,
        *chosen.candidate.id,
        admin_access=request.admin_access,
        tolerations=request.tolerations,
        share_id=str(uuid.uuid4()) if shared else "",
        consumed_capacity={name: str(amount) for name, amount in amounts.items()},
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
    )


def _of_classes(
    names: Mapping[str, SubRequest], classes: Mapping[str, DeviceClass]
) -> Iterator[AllocatedConfiguration]:
    """The settings of each class once, with the requests that name the class."""
    users: dict[str, list[str]] = {}
    for name, request in names.items():
        users.setdefault(request.device_class_name, []).append(name)
    for kind, requests in users.items():
        for setting in classes[kind].spec.config:
            yield AllocatedConfiguration(setting.opaque, tuple(requests), "FromClass")


def _of_claim(claim: ResourceClaim, names: Iterable[str]) -> Iterator[AllocatedConfiguration]:
    """The claim's settings, except those of alternatives that were not chosen.

    A setting is there once for each request that it names, as kube-scheduler writes it.
    """
    for setting in claim.spec.devices.config:
        users = [name for name in names if _names(setting.requests, name)]
        for _ in users if setting.requests else ("all",):
            yield AllocatedConfiguration(setting.opaque, setting.requests, "FromClaim")


def _names(requests: Sequence[str], name: str) -> bool:
    return name in requests or name.partition("/")[0] in requests


def _nodes(candidates: Iterable[Candidate], node: str) -> NodeSelector | None:
    """The nodes that can use all devices; None for every node."""
    fields: dict[NodeSelectorRequirement, None] = {}
    expressions: dict[NodeSelectorRequirement, None] = {}
    for candidate in candidates:
        own = candidate.slice.per_device_node_selection
        place = candidate.device if own else candidate.slice
        if place.node_name is not None or candidate.device.binds_to_node:
            named = NodeSelectorRequirement("metadata.name", "In", (node,))
            return NodeSelector((NodeSelectorTerm(match_fields=(named,)),))
        for term in place.node_selector.node_selector_terms if place.node_selector else ():
            fields |= dict.fromkeys(term.match_fields)
            expressions |= dict.fromkeys(term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(expressions), tuple(fields)),))
