"""Sets of field paths, kept as what `fieldsV1` of a managed-fields entry holds.

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}

is the set of `.metadata.labels` and `.metadata.labels.app`. A step of a path is `f:` and the
name of a field, `k:` and the keys of a list's element, `v:` and an element that is a value of
its own, or `i:` and a position. What a step leads to is `{}` if only the step itself is in the
set, else what follows it, with `.` if the step is in the set as well.

So reading and writing a set costs nothing, and equal sets are equal dicts; in which order the
steps are written says nothing. They are shared
between versions of an object: nothing here changes one that it did not make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

FieldSet: TypeAlias = dict[str, "FieldSet"]

SELF = "."
LEAF: FieldSet = {}
"""What a step leads to that is in the set, and nothing under it."""
EMPTY: FieldSet = {}

_decode = msgspec.json.Decoder().decode
_decode_keys = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode

# Go's JSON encoder writes these as escapes, in strings inside of steps too.
_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


class Malformed(ValueError):
    """Not a set of field paths."""


def value_text(value: Any) -> str:
    """A value as it is written inside of a step."""
    return _scalar_text(value) if type(value) in (str, int) else _text(value)


# The names of containers, variables and ports recur in every object.
@lru_cache(maxsize=8192)
def _scalar_text(value: str | int) -> str:
    return _text(value)


def _text(value: Any) -> str:
    return escaped(_encode(value).decode())


def escaped(text: str) -> str:
    """JSON as Go writes it."""
    for character, escape in _ESCAPES.items():
        if character in text:
            text = text.replace(character, escape)
    return text


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in either."""
    if not left or not right:
        return left or right
    merged = dict(left)
    for step, theirs in right.items():
        ours = merged.get(step)
        merged[step] = theirs if ours is None else _either(ours, theirs)
    return merged


def _either(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        return _as_member(right)
    return union(left, right) if right else _as_member(left)


def _as_member(node: FieldSet) -> FieldSet:
    return node if not node or SELF in node else {SELF: LEAF, **node}


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in both."""
    both: FieldSet = {}
    for step, ours in left.items():
        theirs = right.get(step)
        if theirs is None:
            continue
        if ours and theirs:
            kept = intersection(ours, theirs)
            if kept:
                both[step] = _tidy(kept)
        elif SELF in (ours or theirs) or not (ours or theirs):
            both[step] = LEAF
    return both


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of `left` that are not in `right`; what is under one of those stays."""
    rest: FieldSet = {}
    for step, ours in left.items():
        theirs = right.get(step)
        if theirs is None:
            rest[step] = ours
        elif not ours:
            if theirs and SELF not in theirs:
                rest[step] = LEAF
        elif kept := difference(ours, theirs or _ONLY_SELF):
            rest[step] = _tidy(kept)
    return rest


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of `left` that are neither in `right` nor under one of those."""
    if not right:
        return left
    rest: FieldSet = {}
    for step, ours in left.items():
        theirs = right.get(step)
        if theirs is None:
            rest[step] = ours
        elif not theirs or SELF in theirs:
            continue
        elif not ours:
            rest[step] = LEAF
        elif kept := without(ours, theirs):
            rest[step] = _tidy(kept)
    return rest


_ONLY_SELF: FieldSet = {SELF: LEAF}


def _tidy(node: FieldSet) -> FieldSet:
    """A node that may have lost all that was under it."""
    return LEAF if len(node) == 1 and SELF in node else node


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """The steps of every path, those on one level before those under them."""
    yield from _paths(fields, ())


def _paths(fields: FieldSet, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    steps = [step for step in _sorted_steps(fields) if step != SELF]
    for step in steps:
        node = fields[step]
        if not node or SELF in node:
            yield (*before, step)
    for step in steps:
        if fields[step]:
            yield from _paths(fields[step], (*before, step))


def text(path: tuple[str, ...]) -> str:
    """A path for people: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, path))


def _step_text(step: str) -> str:
    mark, content = step[0], step[2:]
    if mark == "f":
        return f".{content}"
    if mark == "k":
        keys = _decode(content)
        return "[" + ",".join(f"{key}={value_text(keys[key])}" for key in sorted(keys)) + "]"
    return f"[={content}]" if mark == "v" else f"[{content}]"


def _sorted_steps(fields: FieldSet) -> list[str]:
    if len(fields) < 2:
        return list(fields)
    steps = sorted(fields)
    # Names sort as text; keys and values by what they are: 80 before 443.
    return steps if steps[-1][0] == "f" or steps[-1] == SELF else sorted(fields, key=_order)


def _order(step: str) -> tuple[Any, ...]:
    mark, content = step[:1], step[2:]
    if mark in ("", "f", SELF):
        return (0 if mark != "f" else 1, content)
    if mark == "k":
        keys = _decode(content)
        return (2, *((key, *_rank(keys[key])) for key in sorted(keys)))
    return (3 if mark == "v" else 4, _rank(_decode(content)))


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before strings before booleans, each by value."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, str(value))


def parse(value: Any) -> FieldSet:
    """A set that somebody sent, in its normal form; steps of unknown kinds are left out."""
    if not isinstance(value, dict):
        raise Malformed(f"{value!r} is no set of fields")
    fields: FieldSet = {}
    for step, inner in value.items():
        if step == SELF:
            fields[SELF] = LEAF
        elif (normal := _parse_step(step)) is not None:
            node = _tidy(parse(inner))
            fields[normal] = _either(fields[normal], node) if normal in fields else node
    return fields


def _parse_step(step: str) -> str | None:
    mark, colon, content = step[:1], step[1:2], step[2:]
    if colon != ":":
        raise Malformed(f"{step!r} has no colon after its first letter")
    reader = _STEPS.get(mark)
    if reader is None:
        return None
    try:
        return f"{mark}:{reader(content)}"
    except (msgspec.DecodeError, ValueError) as error:
        raise Malformed(f"{step!r}: {error}") from None


def key_text(keys: dict[str, Any]) -> str:
    """The keys of an element as they are written inside of a step."""
    return "{" + ",".join([f'"{key}":{value_text(keys[key])}' for key in sorted(keys)]) + "}"


_STEPS: dict[str, Callable[[str], str]] = {
    "f": lambda content: content,
    "k": lambda content: key_text(_decode_keys(content)),
    "v": lambda content: value_text(_decode(content)),
    "i": lambda content: str(int(content)),
}
