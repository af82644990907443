"""How much of a device's capacity a request takes, where claims may share the device. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kvestigate.kube.quantities import NANO, Notation, Quantity, parse
from kvestigate.kube.views.devices import (
    Capacity,
    CapacityRange,
    CapacityRequestPolicy,
    CapacityRequirements,
    Device,
)

Amounts = Mapping[str, int]
"""Nano-units by the name of a capacity."""


def consumed(device: Device, wanted: CapacityRequirements | None) -> dict[str, Quantity]:
    """What a request takes of each capacity of a device, rounded up to what can be had."""
    requests = wanted.requests if wanted is not None else {}
    return {name: _taken(each, requests.get(name)) for name, each in device.capacity.items()}


def is_enough(device: Device, wanted: CapacityRequirements | None, used: Amounts) -> bool:
    """Whether a device has the capacities that are asked for, beside what is used already."""
    if wanted is not None and not wanted.requests.keys() <= device.capacity.keys():
        return False
    for name, amount in consumed(device, wanted).items():
        capacity = device.capacity[name]
        if capacity.request_policy is not None and _violates(amount, capacity.request_policy):
            return False
        if used.get(name, 0) + amount.nanos > parse(capacity.value).nanos:
            return False
    return True


def _taken(capacity: Capacity, request: str | None) -> Quantity:
    policy = capacity.request_policy
    if request is None:
        default = policy.default if policy is not None else None
        return parse(capacity.value if default is None else default)
    amount = parse(request)
    if policy is None:
        return amount
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded(amount, policy.valid_range)
    return next((each for each in map(parse, policy.valid_values) if amount <= each), amount)


def _rounded(amount: Quantity, valid: CapacityRange) -> Quantity:
    least = parse(valid.min or "0")
    if amount < least:
        return least
    if valid.step is None:
        return amount
    step = _step(valid.step)
    steps = -(-(amount.whole - least.whole) // step)
    return Quantity((least.whole + step * steps) * NANO, Notation.BINARY)


def _step(step: str) -> int:
    return max(1, parse(step).whole)  # an API server refuses smaller ones


def _violates(amount: Quantity, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount == parse(policy.default):
        return False
    valid = policy.valid_range
    if valid is not None:
        if valid.max is not None and amount > parse(valid.max):
            return True
        if valid.step is None:
            return False
        return (amount.whole - parse(valid.min or "0").whole) % _step(valid.step) != 0
    return bool(policy.valid_values) and amount not in map(parse, policy.valid_values)
