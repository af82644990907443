"""Amounts the way SkyPilot writes them (`4+`, `16`, `64GB`) and the way Kubernetes does. Pure."""

from __future__ import annotations

import re
from typing import Any

from kvestigate.errors import InputError
from kvestigate.jobs.tasks.model import Accelerator, Amount
from kvestigate.kube import quantities

_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_UNIT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgGtTpP])[bB]|(\d+(?:\.\d+)?)([kmgtp])")
_COUNT = re.compile(r"[1-9]\d{0,3}")
_MOST_PORTS = 100


def cpus(value: Any, where: str) -> Amount:
    text, at_least = _plus(value, where, "a number of CPUs such as 4, 4+ or 500m")
    return Amount(_positive(text, where), at_least)


def memory(value: Any, where: str) -> Amount:
    text, at_least = _plus(value, where, "an amount of memory such as 16, 16+, 64GB or 4Gi")
    return Amount(_bytes(text, where), at_least)


def disk(value: Any, where: str) -> str:
    text, _ = _plus(value, where, "a disk size such as 256, 256GB or 256Gi")
    return _bytes(text, where)


def accelerators(value: Any, where: str) -> tuple[Accelerator, ...]:
    """`1`, `V100:2`, `[L4:1, A100:1]`, `{A100: 1}` or `{A100:1, L4:1}`; the first is preferred."""
    if isinstance(value, list):
        found = [
            each
            for index, inner in enumerate(value)
            for each in accelerators(inner, f"{where}[{index}]")
        ]
    elif isinstance(value, dict):
        # `{A100:1}` without a blank is, to YAML, the key `A100:1` with no value.
        found = [
            _accelerator(name if count is None else f"{name}:{count}", f"{where}.{name}")
            for name, count in value.items()
        ]
    else:
        found = [_accelerator(value, where)]
    if not found:
        raise InputError("is empty", where=where, hint="write A100:8, or leave the field out")
    return tuple(found)


def ports(value: Any, where: str) -> tuple[int, ...]:
    """`8081`, `10022-10040`, or a list of these."""
    items = value if isinstance(value, list) else [value]
    found: dict[int, None] = {}
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
        found |= dict.fromkeys(range(low, high + 1))
    return tuple(found)


def _port(text: str, item: Any, where: str) -> int:
    if isinstance(item, bool) or not text.isdecimal() or not 1 <= int(text[:6]) <= 65535:
        raise InputError(
            f"{item!r} is no port from 1 to 65535", where=where, hint="write 8080 or 8080-8090"
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
        f"{value!r} is no accelerator", where=where, hint="write a count, a name or A100:8"
    )


def _plus(value: Any, where: str, form: str) -> tuple[str, bool]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InputError(f"{value!r} is not {form}", where=where)
    text = str(value).strip()
    return text.removesuffix("+"), text.endswith("+")


def _bytes(text: str, where: str) -> str:
    if _PLAIN.fullmatch(text):
        return _positive(f"{text}Gi", where)
    if unit := _UNIT.fullmatch(text):
        number, letter = unit[1] or unit[3], unit[2] or unit[4]
        return _positive(f"{number}{letter.upper()}i", where)
    return _positive(text, where)


def _positive(text: str, where: str) -> str:
    try:
        amount = quantities.parse(text)
    except InputError as error:
        raise InputError(error.message, where=where, hint=error.hint) from None
    if amount.nanos <= 0:
        raise InputError(f"{text!r} is not more than nothing", where=where)
    return str(amount)
