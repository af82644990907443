"""The devices of a cluster as decisions read them: slices, classes, claims, and what is held. Pure.

An allocation counts from the moment of the decision (`assume`), before the API server has it.
Until then, what watches bring of the claim must not free its devices again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvestigate.kube.devices.allocation import allocate
from kvestigate.kube.devices.holdings import Holdings
from kvestigate.kube.devices.pools import Slices
from kvestigate.kube.keys import Key, key_of
from kvestigate.kube.node_selection import Labels
from kvestigate.kube.views.devices import (
    Allocation,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)


class Inventory:
    """Changes object by object."""

    def __init__(self) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self._slices = Slices()
        self._claims: dict[Key, ResourceClaim] = {}
        self._pending: dict[Key, Allocation] = {}
        self._held = Holdings()

    @property
    def claims(self) -> Mapping[Key, ResourceClaim]:
        return self._claims

    def claim(self, key: Key) -> ResourceClaim | None:
        return self._claims.get(key)

    def put_slice(self, new: ResourceSlice) -> None:
        self._slices.put(new)

    def drop_slice(self, name: str) -> None:
        self._slices.drop(name)

    def put_claim(self, new: ResourceClaim) -> None:
        key = key_of(new)
        self._count(key, -1)
        self._claims[key] = new
        self._count(key, 1)

    def drop_claim(self, key: Key) -> None:
        self._count(key, -1)
        self._claims.pop(key, None)
        self._pending.pop(key, None)

    def assume(self, key: Key, allocation: Allocation) -> None:
        """The claim gets these devices, as soon as that is written."""
        self._count(key, -1)
        self._pending[key] = allocation
        self._count(key, 1)

    def is_pending(self, key: Key) -> bool:
        return key in self._pending

    def settle(self, key: Key, written: ResourceClaim | None) -> None:
        """The allocation was written, or (None) will not be."""
        self._count(key, -1)
        self._pending.pop(key, None)
        known = self._claims.get(key)
        if written is not None and known is not None and _is_newer(written, known):
            self._claims[key] = written
        self._count(key, 1)

    def allocate(
        self, node: str, labels: Labels, claims: Sequence[ResourceClaim]
    ) -> list[Allocation] | None:
        """See `allocation.allocate`."""
        pools = self._slices.pools(node, labels)
        return allocate(node, labels, pools, self.classes, self._held, claims)

    def _count(self, key: Key, number: int) -> None:
        claim = self._claims.get(key)
        written = claim.status.allocation if claim is not None else None
        allocation = written or self._pending.get(key)
        if allocation is None:
            return
        if number > 0:
            self._held.add(allocation)
        else:
            self._held.remove(allocation)


def _is_newer(written: ResourceClaim, known: ResourceClaim) -> bool:
    """Whether the watch has not brought the written claim, or a later state of it, yet."""
    same = written.metadata.uid == known.metadata.uid
    return same and known.status.allocation is None
