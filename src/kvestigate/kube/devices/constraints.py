"""Constraints between the devices of one claim, followed device by device. Pure.

The search adds a device and, if that leads nowhere, removes the device again. What a constraint
remembers in between is what kube-scheduler's does, so that equal claims get equal devices: of a
`distinctAttribute` it keeps the last value of each request, and forgets that value on removal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from kvestigate.kube.devices.pools import Candidate
from kvestigate.kube.views.devices import DeviceConstraint

_Attribute = dict[str, Any]


class Constraint(Protocol):
    def add(self, request: str, candidate: Candidate) -> bool:
        """Whether the device may be chosen too; if so, the device counts from now on.

        `request` is `REQUEST` or `REQUEST/ALTERNATIVE`.
        """

    def remove(self, request: str) -> None:
        """The device that was added last, for this request, is not chosen after all."""


def followed(constraints: Iterable[DeviceConstraint]) -> list[Constraint]:
    return [
        _Same(each) if each.match_attribute is not None else _Distinct(each) for each in constraints
    ]


class _Same:
    """All devices have the same value."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = constraint.requests
        self._name = constraint.match_attribute or ""
        self._value: _Attribute | None = None
        self._devices = 0

    def add(self, request: str, candidate: Candidate) -> bool:
        if not _concerns(self._requests, request):
            return True
        value = _attribute(candidate, self._name)
        if value is None or (self._devices and value != self._value):
            return False
        self._value = value
        self._devices += 1
        return True

    def remove(self, request: str) -> None:
        self._devices -= _concerns(self._requests, request)


class _Distinct:
    """No two devices have the same value."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._requests = constraint.requests
        self._name = constraint.distinct_attribute or ""
        self._values: dict[str, _Attribute] = {}
        """Of the last device of each request."""

    def add(self, request: str, candidate: Candidate) -> bool:
        if not _concerns(self._requests, request):
            return True
        value = _attribute(candidate, self._name)
        if value is None or value in self._values.values():
            return False
        self._values[_base(request)] = value
        return True

    def remove(self, request: str) -> None:
        if _concerns(self._requests, request):
            self._values.pop(_base(request), None)


def _base(request: str) -> str:
    return request.partition("/")[0]


def _concerns(requests: tuple[str, ...], request: str) -> bool:
    return not requests or request in requests or _base(request) in requests


def _attribute(candidate: Candidate, name: str) -> _Attribute | None:
    """The attribute of a qualified name; those of the driver may be written without its domain."""
    attributes = candidate.device.attributes
    if name in attributes:
        return attributes[name]
    domain, _, key = name.partition("/")
    return attributes.get(key) if domain == candidate.slice.driver else None
