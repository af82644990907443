"""The functions that expressions may call, by name.

A library is a dict from signatures to what computes them. `string::charAt(int) -> string` is a
method of strings, `optional.of(A) -> optional_type(A)` a function whose name has a dot in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from kvestigate.kube.cel import types
from kvestigate.kube.cel.types import Check, Type

Run = Callable[..., Any]
Library = Mapping[str, Run]

_SIGNATURE = re.compile(r"(?:(?P<target>[^:]+)::)?(?P<name>[^(:]+)\((?P<args>.*)\) -> (?P<to>.+)")


class Overload(msgspec.Struct, frozen=True):
    params: tuple[Type, ...]
    """The target of a method is the first."""
    result: Type
    run: Run
    checks: tuple[Check, ...]

    def takes(self, given: tuple[Any, ...]) -> bool:
        """Whether these values are what it computes with."""
        return all(check(value) for check, value in zip(self.checks, given, strict=True))


Functions = Mapping[tuple[str, bool], tuple[Overload, ...]]
"""By name, and whether it is a method."""


def functions(*libraries: Library) -> Functions:
    found: dict[tuple[str, bool], tuple[Overload, ...]] = {}
    for library in libraries:
        for signature, run in library.items():
            key, overload = _overload(signature, run)
            found[key] = (*found.get(key, ()), overload)
    return found


def _overload(signature: str, run: Run) -> tuple[tuple[str, bool], Overload]:
    match = _SIGNATURE.fullmatch(signature)
    assert match is not None, signature
    params = [types.parsed(each) for each in _split(match["args"])]
    if match["target"]:
        params.insert(0, types.parsed(match["target"]))
    checks = tuple(map(types.check_of, params))
    made = Overload(tuple(params), types.parsed(match["to"]), run, checks)
    return (match["name"], match["target"] is not None), made


@cache
def _split(text: str) -> tuple[str, ...]:
    """At commas that are in no brackets."""
    parts = re.split(r",\s*(?![^(]*\))", text)
    return tuple(part for part in parts if part)
