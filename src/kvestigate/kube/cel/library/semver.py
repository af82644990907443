"""Semantic versions."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import msgspec

from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.signatures import Library

_S = "kubernetes.Semver"
_NUMBER = r"(0|[1-9][0-9]*)"
_TAIL = r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_FORM = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}{_TAIL}", re.ASCII)
_LOOSE = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_TAIL}", re.ASCII)


class Semver(msgspec.Struct, frozen=True):
    TYPE: ClassVar[str] = _S
    numbers: tuple[int, int, int]
    pre: tuple[str, ...]

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts as versions do: a pre-release before its release, numbers before words."""
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre]
        return (self.numbers, not self.pre, parts)


def _read(text: str, loose: bool) -> Semver | None:
    match = (_LOOSE if loose else _FORM).fullmatch(text.strip() if loose else text)
    if match is None:
        return None
    major, minor, patch = (int(match[at] or 0) for at in (1, 2, 3))
    return Semver((major, minor, patch), tuple(match[4].split(".")) if match[4] else ())


def parsed(text: str, loose: bool = False) -> Semver:
    found = _read(text, loose)
    if found is None:
        raise EvalError("No Major.Minor.Patch elements found")
    return found


def _is(text: str, loose: bool = False) -> bool:
    return _read(text, loose) is not None


def _compare(one: Semver, other: Semver) -> int:
    return (one.rank > other.rank) - (one.rank < other.rank)


FUNCTIONS: Library = {
    f"semver(string) -> {_S}": parsed,
    f"semver(string, bool) -> {_S}": parsed,
    "isSemver(string) -> bool": _is,
    "isSemver(string, bool) -> bool": _is,
    f"{_S}::major() -> int": lambda version: version.numbers[0],
    f"{_S}::minor() -> int": lambda version: version.numbers[1],
    f"{_S}::patch() -> int": lambda version: version.numbers[2],
    f"{_S}::compareTo({_S}) -> int": _compare,
    f"{_S}::isLessThan({_S}) -> bool": lambda one, other: _compare(one, other) < 0,
    f"{_S}::isGreaterThan({_S}) -> bool": lambda one, other: _compare(one, other) > 0,
}
