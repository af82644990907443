"""The allocation that is written into a claim: its devices, settings and nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import structs

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

Chosen = tuple[str, SubRequest, Candidate]
"""`REQUEST` or `REQUEST/ALTERNATIVE`, what it asks for, and a device for it."""


def allocation_of(
    claim: ResourceClaim, chosen: Sequence[Chosen], classes: Mapping[str, DeviceClass], node: str
) -> Allocation:
    results = tuple(
        DeviceResult(
            name, *candidate.id, admin_access=request.admin_access, tolerations=request.tolerations
        )
        for name, request, candidate in chosen
    )
    names = {name: request for name, request, _ in chosen}
    config = (*_of_classes(names, classes), *_of_claim(claim, names))
    config = tuple(_shortened(each, names) for each in config)
    places = [candidate for _, _, candidate in chosen]
    return Allocation(DeviceAllocation(results, config), _nodes(places, node))


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


def _of_claim(
    claim: ResourceClaim, names: Mapping[str, SubRequest]
) -> Iterator[AllocatedConfiguration]:
    """The claim's settings, except those of alternatives that were not chosen."""
    for setting in claim.spec.devices.config:
        if not setting.requests or any(_covers(setting.requests, name) for name in names):
            yield AllocatedConfiguration(setting.opaque, setting.requests, "FromClaim")


def _shortened(setting: AllocatedConfiguration, names: Iterable[str]) -> AllocatedConfiguration:
    """A setting for all requests names none of them."""
    if all(_covers(setting.requests, name) for name in names):
        return structs.replace(setting, requests=())
    return setting


def _covers(requests: Sequence[str], name: str) -> bool:
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
