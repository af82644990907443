"""Amounts the way SkyPilot writes them (`4+`, `16`, `64GB`) and the way Kubernetes does. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.model import Accelerator, Amount
from kvestigate.kube import quantities

_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtTpP])[bB]|(\d+(?:\.\d+)?)([kmgtp])")
_COUNT = re.compile(r"[1-9]\d{0,3}")
_MOST_PORTS = 100


@dataclass(frozen=True, slots=True)
class _Form:
    """How messages call an amount, and what to write."""

    name: str
    examples: str

    def refused(self, value: Any, where: str) -> InputError:
        return InputError(
            f"{value!r} is not {self.name}", where=where, hint=f"write {self.examples}"
        )


_CPUS = _Form("a CPU amount", "4, 4+, 0.5 or 500m")
_MEMORY = _Form("an amount of memory", "16, 16+, 64GB or 4Gi")
_DISK = _Form("a disk size", "256, 256GB or 256Gi")


def cpus(value: Any, where: str) -> Amount:
    text, at_least = _plus(value, where, _CPUS)
    return Amount(_positive(text, value, where, _CPUS), at_least)


def memory(value: Any, where: str) -> Amount:
    text, at_least = _plus(value, where, _MEMORY)
    return Amount(_positive(_in_bytes(text), value, where, _MEMORY), at_least)


def disk(value: Any, where: str) -> str:
    text, _ = _plus(value, where, _DISK)
    return _positive(_in_bytes(text), value, where, _DISK)


def accelerators(value: Any, where: str) -> tuple[Accelerator, ...]:
    """`1`, `V100:2`, `[L4:1, A100:1]`, `{A100: 1}` or `{A100:1, L4:1}`; the first is preferred."""
    if isinstance(value, list):
        choices = [
            accelerator
            for index, inner in enumerate(value)
            for accelerator in accelerators(inner, f"{where}[{index}]")
        ]
    elif isinstance(value, dict):
        # `{A100:1}` without a blank is, to YAML, the key `A100:1` with no value.
        choices = [
            _accelerator(name if count is None else f"{name}:{count}", f"{where}.{name}")
            for name, count in value.items()
        ]
    else:
        choices = [_accelerator(value, where)]
    if not choices:
        raise InputError("is empty", where=where, hint="write A100:8, or leave the field out")
    return tuple(choices)


def ports(value: Any, where: str) -> tuple[int, ...]:
    """`8081`, `10022-10040`, or a list of these."""
    items = value if isinstance(value, list) else [value]
    numbers: dict[int, None] = {}
    for index, item in enumerate(items):
        path = f"{where}[{index}]" if isinstance(value, list) else where
        first, dash, last = str(item).partition("-")
        low, high = _port(first, item, path), _port(last if dash else first, item, path)
        if high - low >= _MOST_PORTS:
            raise InputError(
                f"{item!r} is more than {_MOST_PORTS} ports",
                where=path,
                hint="a Service lists each port: name those that are used",
            )
        numbers |= dict.fromkeys(range(low, high + 1))
    return tuple(numbers)


def _port(text: str, item: Any, where: str) -> int:
    if isinstance(item, bool) or not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise InputError(
            f"{item!r} is not a port from 1 to 65535", where=where, hint="write 8080 or 8080-8090"
        )
    return int(text)


def _accelerator(value: Any, where: str) -> Accelerator:
    text = str(value).strip()
    if isinstance(value, int | str) and not isinstance(value, bool):
        if _COUNT.fullmatch(text):
            return Accelerator(int(text))
        name, colon, count = text.rpartition(":")
        if not colon:
            name, count = text, "1"
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name) and _COUNT.fullmatch(count):
            return Accelerator(int(count), name)
    raise InputError(
        f"{value!r} is not an accelerator", where=where, hint="write a count, a name or A100:8"
    )


def _plus(value: Any, where: str, form: _Form) -> tuple[str, bool]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise form.refused(value, where)
    text = str(value).strip()
    return text.removesuffix("+"), text.endswith("+")


def _in_bytes(text: str) -> str:
    """The Kubernetes quantity of an amount: a plain number means GiB, `64GB` means 64 GiB."""
    if _PLAIN.fullmatch(text):
        return f"{text}Gi"
    if unit := _UNIT.fullmatch(text):
        number, letter = unit[1] or unit[3], unit[2] or unit[4]
        return f"{number}{letter.upper()}i"
    return text


def _positive(quantity: str, value: Any, where: str, form: _Form) -> str:
    try:
        amount = quantities.parse(quantity)
    except InputError:
        raise form.refused(value, where) from None
    if amount.nanos <= 0:
        raise InputError(
            f"{value!r} is not more than 0", where=where, hint=f"write {form.examples}"
        )
    return str(amount)
