"""Whether a device meets the CEL selectors of a class or a request. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvestigate.kube import quantities
from kvestigate.kube.cel import CompileError, EvalError, OutOfBudget, compiled, types
from kvestigate.kube.cel.library.quantities import Amount
from kvestigate.kube.cel.library.semver import parsed as semantic_version
from kvestigate.kube.cel.types import DYN, STRING, Type, object_of
from kvestigate.kube.cel.values import DefaultMap
from kvestigate.kube.views.devices import Device, DeviceSelector

DEVICE = object_of(
    "kubernetes.DRADevice",
    driver=STRING,
    allowMultipleAllocations=types.BOOL,
    attributes=types.map_of(STRING, types.map_of(STRING, DYN)),
    capacity=types.map_of(STRING, types.map_of(STRING, Type("kubernetes.Quantity"))),
)
"""The variable `device` of an expression."""


class SelectorError(Exception):
    """An expression does not compile, or has no value for a device."""


def matches(selectors: Iterable[DeviceSelector], device: Device, driver: str) -> bool:
    """Whether all expressions are true; SelectorError if one of them cannot be evaluated."""
    value: dict[str, Any] | None = None
    for position, selector in enumerate(selectors):
        try:
            program = compiled(selector.cel.expression, {"device": DEVICE})
        except CompileError as error:
            raise SelectorError(f"selector #{position}: CEL compile error: {error}") from None
        if value is None:
            value = _value(device, driver)
        try:
            verdict = program.run(value)
        except (EvalError, OutOfBudget) as error:
            raise SelectorError(f"selector #{position}: CEL runtime error: {error}") from None
        if not isinstance(verdict, bool):
            raise SelectorError(f"selector #{position}: the result is not a bool")
        if not verdict:
            return False
    return True


def _value(device: Device, driver: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for name, attribute in device.attributes.items():
        domain, key = _qualified(name, driver)
        attributes.setdefault(domain, {})[key] = _attribute(attribute)
    capacity: dict[str, Any] = {}
    for name, amount in device.capacity.items():
        domain, key = _qualified(name, driver)
        nanos = quantities.parse(amount.value).nanos
        capacity.setdefault(domain, {})[key] = Amount(nanos)
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": DefaultMap(attributes),
        "capacity": DefaultMap(capacity),
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier; a name without a domain is one of the driver."""
    domain, slash, key = name.rpartition("/")
    return (domain, key) if slash else (driver, name)


def _attribute(attribute: dict[str, Any]) -> Any:
    if "version" in attribute:
        return semantic_version(attribute["version"])
    return next(iter(attribute.values()))
