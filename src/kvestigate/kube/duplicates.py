"""Keys that an object in a JSON text has twice, which fast decoders pass over in silence.

kube-apiserver tells their senders, and so do we; the last value counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
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
        known = {text.replace("unknown", "duplicate", 1) for text in unknown}
        return Repeated(
            tuple(text for text in self.warnings if text not in known),
            tuple(text for text in self.complaints if text not in known),
        )

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
    return list(dict.fromkeys(_repeated(json.loads(data, object_pairs_hook=tuple), "")))


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _repeated(inner, f"{path}[{position}]")
    elif isinstance(value, tuple):
        seen = set()
        for key, inner in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                yield where
            seen.add(key)
            yield from _repeated(inner, where)
