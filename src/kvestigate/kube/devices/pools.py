"""The pools of devices that a node can use, in the order in which they are tried. Pure.

A driver replaces a pool by slices of a higher generation. While slices of the newest generation
are missing, the pool is incomplete: its devices are not allocated, as they may be outdated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvestigate.kube.feasibility.selection import Labels, node_selector
from kvestigate.kube.views.devices import Device, ResourceSlice, ResourceSliceSpec


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device, with the slice that offers it."""

    device: Device
    slice: ResourceSliceSpec

    @property
    def id(self) -> tuple[str, str, str]:
        """Driver, pool and name, which tell devices apart."""
        return self.slice.driver, self.slice.pool.name, self.device.name


@dataclass(frozen=True, slots=True)
class NodePool:
    """The part of a pool that one node can use."""

    driver: str
    name: str
    candidates: tuple[Candidate, ...] = ()
    incomplete: bool = False
    """Slices of the newest generation are missing."""
    invalid: bool = False
    """Two devices have the same name."""


def pools_of(node: str, labels: Labels, slices: Iterable[ResourceSlice]) -> list[NodePool]:
    """The pools with devices for a node, sorted by driver and name."""
    groups: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in slices:
        groups.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    pools = []
    for (driver, name), members in sorted(groups.items()):
        pool = _pool(driver, name, members, node, labels)
        if pool is not None:
            pools.append(pool)
    return pools


def _pool(
    driver: str, name: str, members: list[ResourceSlice], node: str, labels: Labels
) -> NodePool | None:
    near = [each for each in members if _is_for(each.spec, node, labels)]
    if not near:
        return None
    generation = max(each.spec.pool.generation for each in near)
    current = [each for each in near if each.spec.pool.generation == generation]
    expected = current[0].spec.pool.resource_slice_count
    if len(current) != expected:
        if any(each.spec.pool.generation > generation for each in members):
            return None  # the driver is replacing the pool, and not yet for this node
        whole = [each for each in members if each.spec.pool.generation == generation]
        if len(whole) != expected:
            return NodePool(driver, name, incomplete=True)
    candidates = tuple(
        Candidate(device, each.spec)
        for each in sorted(current, key=lambda each: each.metadata.name)
        for device in each.spec.devices
    )
    names = {candidate.device.name for candidate in candidates}
    if len(names) < len(candidates):
        return NodePool(driver, name, invalid=True)
    return NodePool(driver, name, candidates)


def _is_for(spec: ResourceSliceSpec, node: str, labels: Labels) -> bool:
    if spec.per_device_node_selection:
        return any(is_at(device, node, labels) for device in spec.devices)
    return is_at(spec, node, labels)


def is_at(place: ResourceSliceSpec | Device, node: str, labels: Labels) -> bool:
    """Whether devices of a slice, or a device with a place of its own, can be used by a node."""
    if place.node_name:
        return place.node_name == node
    if place.all_nodes:
        return True
    return place.node_selector is not None and node_selector(place.node_selector)(node, labels)
