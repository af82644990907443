"""Keys that an object in a JSON text has twice, which fast decoders pass over in silence.

kube-apiserver tells their senders. Of what it knows the type of it merges both values, as Go
does when it reads twice into one variable; of custom resources the last one counts.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

MOST_TOLD = 100
"""kube-apiserver stops collecting there."""
_AFTER_KEY = b":"
_encode = msgspec.json.Encoder().encode


class Repeated(msgspec.Struct, frozen=True):
    """What a text says twice."""

    warnings: tuple[str, ...] = ()
    """`duplicate field "spec.nodeName"`"""
    complaints: tuple[str, ...] = ()
    """The same as an error lists it."""

    def without(self, unknown: tuple[str, ...]) -> Repeated:
        """Less the fields of which it is said already that nobody knows them."""
        told = {text.replace("unknown", "duplicate", 1) for text in unknown}
        return Repeated(
            tuple(text for text in self.warnings if text not in told),
            tuple(text for text in self.complaints if text not in told),
        )

    def prefixed(self, prefix: str) -> Repeated:
        return Repeated(
            tuple(prefix + text for text in self.warnings),
            tuple(prefix + text for text in self.complaints),
        )


ONCE = Repeated()
"""Nothing is said twice."""


def checked(data: bytes, value: Any, *, merging: bool) -> tuple[Any, Repeated]:
    """The value that a JSON text stands for, given what a fast decoder made of it."""
    if none_in(data, value):
        return value, ONCE
    value, paths = find(data, merging=merging)
    told = tuple(f'duplicate field "{path}"' for path in paths[:MOST_TOLD])
    return value, Repeated(told, told)


def in_yaml(lines: tuple[str, ...]) -> Repeated:
    """What the reader of a YAML text has found."""
    if not lines:
        return ONCE
    return Repeated(lines, ("yaml: unmarshal errors:\n  " + "\n  ".join(lines),))


def none_in(data: bytes, value: Any) -> bool:
    """Whether the text has no key twice, given what it was decoded to; a no is not certain.

    Written anew, the value has as many colons as the text, or a key was dropped. (A text might
    spell as many colons otherwise as it repeats keys; nothing writes such a text.) Most texts are
    what is written anew, and that takes no counting.
    """
    anew = _encode(value)
    return data.startswith(anew) or data.count(_AFTER_KEY) == anew.count(_AFTER_KEY)


class _Twice:
    """What a key holds that was given more than once, the first value first."""

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        self.values = list(values)


_DIVISIBLE = (dict, list, _Twice)


def find(data: bytes, *, merging: bool) -> tuple[Any, list[str]]:
    """The value of a text that is known to be JSON, and the paths of the keys given twice."""
    paths: list[str] = []
    raw = json.loads(data, object_pairs_hook=_pairs)
    return _resolved(raw, "", paths, merging=merging), paths


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key not in found:
            found[key] = value
        elif isinstance(found[key], _Twice):
            found[key].values.append(value)
        else:
            found[key] = _Twice(found[key], value)
    return found


def _resolved(value: Any, path: str, paths: list[str], *, merging: bool) -> Any:
    if isinstance(value, list):
        return [
            _resolved(each, f"{path}[{position}]", paths, merging=merging)
            for position, each in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    resolved: dict[str, Any] = {}
    for key, inner in value.items():
        if type(inner) not in _DIVISIBLE:
            resolved[key] = inner
            continue
        where = f"{path}.{key}" if path else key
        if not isinstance(inner, _Twice):
            resolved[key] = _resolved(inner, where, paths, merging=merging)
            continue
        first, *others = inner.values
        resolved[key] = _resolved(first, where, paths, merging=merging)
        paths.append(where)
        for other in others:
            after = _resolved(other, where, paths, merging=merging)
            resolved[key] = _merged(resolved[key], after) if merging else after
    return resolved


def _merged(before: Any, after: Any) -> Any:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    for key, value in after.items():  # in place: nobody else has them, and there may be many
        before[key] = _merged(before[key], value) if key in before else value
    return before
