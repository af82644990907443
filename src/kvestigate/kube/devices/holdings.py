"""Which devices are in use, by the allocations of claims. Pure."""

from __future__ import annotations

from collections import Counter

from kvestigate.kube import quantities
from kvestigate.kube.devices.capacity import Amounts
from kvestigate.kube.devices.pools import DeviceId
from kvestigate.kube.views.devices import Allocation, DeviceResult

_NOTHING: Amounts = {}


class Holdings:
    """Devices in use, followed allocation by allocation.

    Devices that a claim has with admin access only are not in use: others may have them.
    """

    def __init__(self) -> None:
        self._whole: Counter[DeviceId] = Counter()
        self._shares: Counter[DeviceId] = Counter()
        self._capacity: dict[DeviceId, Counter[str]] = {}
        """Nano-units of each capacity that shares of a device take."""

    def add(self, allocation: Allocation) -> None:
        self._count(allocation, 1)

    def remove(self, allocation: Allocation) -> None:
        self._count(allocation, -1)

    def is_whole(self, device: DeviceId) -> bool:
        """Whether a claim has the device for itself."""
        return self._whole[device] > 0

    def is_shared(self, device: DeviceId) -> bool:
        """Whether claims have shares of the device's capacity."""
        return device in self._capacity

    def is_held(self, device: DeviceId) -> bool:
        return self._whole[device] > 0 or self._shares[device] > 0

    def consumed(self, device: DeviceId) -> Amounts:
        return self._capacity.get(device, _NOTHING)

    def _count(self, allocation: Allocation, number: int) -> None:
        for result in allocation.devices.results:
            if result.admin_access:
                continue
            device = (result.driver, result.pool, result.device)
            if not result.share_id:
                self._whole[device] += number
                continue
            self._shares[device] += number
            self._consume(device, result, number)

    def _consume(self, device: DeviceId, result: DeviceResult, number: int) -> None:
        if not result.consumed_capacity:
            return
        amounts = self._capacity.setdefault(device, Counter())
        for name, amount in result.consumed_capacity.items():
            amounts[name] += number * quantities.parse(amount).nanos
        if not any(amounts.values()):
            del self._capacity[device]
