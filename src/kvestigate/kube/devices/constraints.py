"""Constraints between the devices of one claim. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvestigate.kube.devices.pools import Candidate
from kvestigate.kube.views.devices import DeviceConstraint

Choice = tuple[str, Candidate]
"""`REQUEST` or `REQUEST/ALTERNATIVE`, and the device that was chosen for it."""


def allowed(constraint: DeviceConstraint, chosen: Sequence[Choice], new: Choice) -> bool:
    """Whether a device may be added to those that were chosen for a claim."""
    if not _concerns(constraint, new[0]):
        return True
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    value = _attribute(new[1], name)
    if value is None:
        return False
    others = [_attribute(each[1], name) for each in chosen if _concerns(constraint, each[0])]
    if constraint.match_attribute is not None:
        return all(other == value for other in others)
    return value not in others


def _concerns(constraint: DeviceConstraint, request: str) -> bool:
    if not constraint.requests:
        return True
    return request in constraint.requests or request.partition("/")[0] in constraint.requests


def _attribute(candidate: Candidate, name: str) -> dict[str, Any] | None:
    """The attribute of a qualified name; those of the driver may be written without its domain."""
    attributes = candidate.device.attributes
    if name in attributes:
        return attributes[name]
    domain, _, key = name.partition("/")
    return attributes.get(key) if domain == candidate.slice.driver else None
