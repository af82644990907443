"""Keys that an object in a JSON text has twice, which fast decoders pass over in silence.

kube-apiserver tells their senders, and so do we; the last value counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
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

    def prefixed(self, prefix: str) -> Repeated:
        return Repeated(
            tuple(prefix + text for text in self.warnings),
            tuple(prefix + text for text in self.complaints),
        )


ONCE = Repeated()
"""Nothing is said twice."""


def checked(data: bytes, value: Any) -> Repeated:
    """What a JSON text says twice, given what a fast decoder made of it."""
    if none_in(data, value):
        return ONCE
    lines = tuple(f'duplicate field "{path}"' for path in find(data)[:MOST_TOLD])
    return Repeated(lines, lines)


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


def find(data: bytes) -> list[str]:
    """The paths of the keys given twice in a text that is known to be JSON."""
    return [path for path, is_unknown in _told(data) if not is_unknown]


def in_order(data: str, unknown: Collection[str]) -> tuple[str, ...]:
    """Fields that are unknown or given twice, in the order of the JSON text.

    What is inside of an unknown field is not read, so nothing in it is given twice.
    """
    return tuple(
        f'{"unknown" if is_unknown else "duplicate"} field "{path}"'
        for path, is_unknown in _told(data, unknown)
    )


def _told(data: str | bytes, unknown: Collection[str] = ()) -> Iterable[tuple[str, bool]]:
    """The path of each such field, and whether it is unknown; each once."""
    value = json.loads(data, object_pairs_hook=tuple)
    return dict.fromkeys(_walk(value, "", frozenset(unknown)))


def _walk(value: Any, path: str, unknown: frozenset[str]) -> Iterator[tuple[str, bool]]:
    if isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{position}]", unknown)
    elif isinstance(value, tuple):
        seen = set()
        for key, inner in value:
            where = f"{path}.{key}" if path else key
            if where in unknown:
                yield where, True
                continue
            if key in seen:
                yield where, False
            seen.add(key)
            yield from _walk(inner, where, unknown)
