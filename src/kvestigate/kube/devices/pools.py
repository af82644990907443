"""The pools of devices that a node can use, in the order in which they are tried. Pure.

A driver replaces a pool by slices of a higher generation. While slices of the newest generation
are missing, the pool is incomplete: its devices are not allocated, as they may be outdated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kvestigate.kube import quantities
from kvestigate.kube.node_selection import Labels, node_selector
from kvestigate.kube.views.devices import Device, ResourceSlice, ResourceSliceSpec

PoolId = tuple[str, str]
"""Driver and name."""
DeviceId = tuple[str, str, str]
"""Driver, pool and name, which tell devices apart."""
Counters = Mapping[tuple[str, str], int]
"""Nano-units, by counter set and counter."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device, with the slice that offers it."""

    device: Device
    slice: ResourceSliceSpec

    @property
    def id(self) -> DeviceId:
        return self.slice.driver, self.slice.pool.name, self.device.name

    @property
    def pool(self) -> PoolId:
        return self.slice.driver, self.slice.pool.name


@dataclass(frozen=True, slots=True)
class NodePool:
    """The part of a pool that one node can use."""

    driver: str
    name: str
    candidates: tuple[Candidate, ...] = ()
    elsewhere: tuple[Candidate, ...] = ()
    """Devices for other nodes, which take from the same counters."""
    counters: Counters = field(default_factory=dict)
    """What the devices of the pool share."""
    incomplete: bool = False
    """Slices of the newest generation are missing."""
    invalid: str = ""
    """Why no device of the pool is allocated; empty if the pool is sound."""


class Slices:
    """All slices, by the nodes and by the pool that they are for."""

    def __init__(self, slices: Iterable[ResourceSlice] = ()) -> None:
        self._by_name: dict[str, ResourceSlice] = {}
        self._of_node: dict[str, dict[str, ResourceSlice]] = {}
        self._shared: dict[str, ResourceSlice] = {}
        """Those that more than one node may use, and counters, which every node has to know."""
        self._pools: dict[PoolId, dict[str, ResourceSlice]] = {}
        for each in slices:
            self.put(each)

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def put(self, new: ResourceSlice) -> None:
        """Add a slice, or replace the one of the same name."""
        name = new.metadata.name
        self.drop(name)
        self._by_name[name] = new
        self._home(new)[name] = new
        self._pools.setdefault(_pool_of(new), {})[name] = new

    def drop(self, name: str) -> None:
        old = self._by_name.pop(name, None)
        if old is None:
            return
        del self._home(old)[name]
        members = self._pools[_pool_of(old)]
        del members[name]
        if not members:
            del self._pools[_pool_of(old)]

    def pools(self, node: str, labels: Labels) -> list[NodePool]:
        """The pools with devices for a node: by driver and name, those that bind late last."""
        groups: dict[PoolId, list[ResourceSlice]] = {}
        for each in (*self._of_node.get(node, {}).values(), *self._shared.values()):
            if _is_for(each.spec, node, labels):
                groups.setdefault(_pool_of(each), []).append(each)
        pools = []
        for pool, near in sorted(groups.items()):
            made = _pool(pool, near, self._pools[pool].values())
            if made is not None:
                pools.append(made)
        return sorted(pools, key=_binds_late)

    def _home(self, one: ResourceSlice) -> dict[str, ResourceSlice]:
        node = one.spec.node_name
        if not node or one.spec.shared_counters:
            return self._shared
        return self._of_node.setdefault(node, {})


def _pool_of(one: ResourceSlice) -> PoolId:
    return one.spec.driver, one.spec.pool.name


def _binds_late(pool: NodePool) -> bool:
    return any(candidate.device.binding_conditions for candidate in pool.candidates)


def _pool(
    pool: PoolId, near: Sequence[ResourceSlice], members: Iterable[ResourceSlice]
) -> NodePool | None:
    generation = max(each.spec.pool.generation for each in near)
    current = [each for each in near if each.spec.pool.generation == generation]
    expected = current[0].spec.pool.resource_slice_count
    whole = current
    if len(current) != expected:
        members = list(members)
        if any(each.spec.pool.generation > generation for each in members):
            return None  # the driver is replacing the pool, and not yet for this node
        whole = [each for each in members if each.spec.pool.generation == generation]
        if len(whole) != expected:
            return NodePool(*pool, incomplete=True)
    names = {each.metadata.name for each in current}
    far = [each for each in whole if each.metadata.name not in names]
    return _checked(pool, current, far)


def _checked(
    pool: PoolId, current: Sequence[ResourceSlice], far: Iterable[ResourceSlice]
) -> NodePool:
    candidates = _candidates(sorted(current, key=lambda each: each.metadata.name))
    elsewhere = _candidates(far)
    seen: set[str] = set()
    for candidate in candidates:
        if candidate.device.name in seen:
            return NodePool(*pool, invalid=f"duplicate device name {candidate.device.name}")
        seen.add(candidate.device.name)
    sets = [each for one in current for each in one.spec.shared_counters]
    if len({each.name for each in sets}) < len(sets):
        return NodePool(*pool, invalid="duplicate counter set name")
    counters = {
        (each.name, name): quantities.parse(counter.value).nanos
        for each in sets
        for name, counter in each.counters.items()
    }
    for candidate in (*candidates, *elsewhere):
        for counter in consumption(candidate.device):
            if counter not in counters:
                return NodePool(*pool, invalid=f"counter {'/'.join(counter)} not found")
    return NodePool(*pool, candidates, elsewhere, counters)


def _candidates(slices: Iterable[ResourceSlice]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(device, each.spec)
        for each in slices
        if not each.spec.shared_counters
        for device in each.spec.devices
    )


def consumption(device: Device) -> Counters:
    """What the device takes of its pool's counters while it is allocated."""
    return {
        (each.counter_set, name): quantities.parse(counter.value).nanos
        for each in device.consumes_counters
        for name, counter in each.counters.items()
    }


def _is_for(spec: ResourceSliceSpec, node: str, labels: Labels) -> bool:
    if spec.shared_counters:
        return True
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
