"""Keys that an object in a JSON text has twice, which fast decoders pass over in silence.

kube-apiserver tells their senders, and so do we; the last value counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

import msgspec

from kvestigate.kube import pauses

_BETWEEN_RESTS = 256
"""Tokens, which are read in a tenth of a millisecond."""
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
    lines = tuple(f'duplicate field "{path}"' for path in find(data))
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


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],]')


class _Inside(msgspec.Struct):
    """An object or a list that the reader is in."""

    path: str
    keys: set[str] | None
    """Those of the object so far; None in a list."""
    ignored: bool
    """Inside of an unknown field, which nobody reads."""
    position: int = 0
    """Of the next element of the list."""
    expects_key: bool = True
    key: str = ""
    """The last one of the object."""
    key_unknown: bool = False

    @property
    def here(self) -> str:
        if self.keys is None:
            return f"{self.path}[{self.position}]"
        return f"{self.path}.{self.key}" if self.path else self.key


def find(data: bytes) -> list[str]:
    """The paths of the keys given twice in a text that is known to be JSON; MOST_TOLD at most."""
    return [path for path, _ in _told(data, frozenset())]


def in_order(data: str, unknown: Collection[str]) -> tuple[str, ...]:
    """Fields that are unknown or given twice, in the order of the JSON text; MOST_TOLD at most.

    What is inside of an unknown field is not read, so nothing in it is given twice.
    """
    return tuple(
        f'{"unknown" if is_unknown else "duplicate"} field "{path}"'
        for path, is_unknown in _told(data.encode(), frozenset(unknown))
    )


def _told(data: bytes, unknown: frozenset[str]) -> dict[tuple[str, bool], None]:
    """The path of each such field, and whether it is unknown; each once."""
    paths: dict[tuple[str, bool], None] = {}
    inside: list[_Inside] = []
    for number, match in enumerate(_TOKEN.finditer(data)):
        if not number % _BETWEEN_RESTS:
            pauses.rest_if_due()
        token = match[0]
        innermost = inside[-1] if inside else None
        if token in b"{[":
            inside.append(_entered(innermost, is_object=token == b"{"))
        elif token in b"}]":
            inside.pop()
        elif innermost is None:
            continue
        elif token == b",":
            innermost.position += 1
            innermost.expects_key = True
        elif innermost.keys is not None and innermost.expects_key:
            _take_key(innermost, innermost.keys, _key(token), unknown, paths)
            if len(paths) == MOST_TOLD:
                break
    return paths


def _entered(outer: _Inside | None, *, is_object: bool) -> _Inside:
    keys: set[str] | None = set() if is_object else None
    if outer is None:
        return _Inside("", keys, ignored=False)
    return _Inside(outer.here, keys, ignored=outer.ignored or outer.key_unknown)


def _take_key(
    inside: _Inside,
    keys: set[str],
    key: str,
    unknown: frozenset[str],
    paths: dict[tuple[str, bool], None],
) -> None:
    inside.expects_key = False
    inside.key = key
    if inside.ignored:
        return
    inside.key_unknown = inside.here in unknown
    if inside.key_unknown or key in keys:
        paths[inside.here, inside.key_unknown] = None
    keys.add(key)


def _key(token: bytes) -> str:
    key: str = json.loads(token) if b"\\" in token else token[1:-1].decode()
    return key
