"""Answers that fit a model's context: of some fields, cut to a budget, with a cursor. Pure.

An answer is an object. Its large members are lists, mappings of many names, and texts. When it is
too long, each of them gets its share of the room: what is smaller stays whole, what is larger is
cut where an item ends. A note in front says how much there is and how to go on. A cursor is a
position in each list that was cut, so nothing has to be remembered between two requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from kvestigate.cybernet.refusals import ConstraintViolated
from kvestigate.operation import param

NOTE = "_answer"
"""The member of an answer that says what is missing."""
PARAMETER = "answer"
"""The parameter of every request that says how its answer should be."""
_FOR_NOTE = 1_200
_MANY = 24
"""Names from which on a mapping is cut like a list."""
_LEAST_BUDGET = 2_048
_LONGEST_CURSOR = 400
_MOST_FIELDS = 100
"""Each is looked for in every item."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """How an answer should be."""

    budget: Annotated[
        int | None,
        param("Bytes that the answer may have; more are cut, and `_answer` says how to go on."),
    ] = None
    cursor: Annotated[str, param("Where to go on: `_answer.cursor` of the answer before.")] = ""
    fields: Annotated[
        tuple[str, ...],
        param("Only these fields, with dots through lists: `pods.name`, `pods.status`."),
    ] = ()


def wish_of(given: Any, default: int | None, most: int) -> Wish:
    """What a request wishes; ConstraintViolated if it may not."""
    try:
        wish = msgspec.convert({} if given is None else given, Wish)
    except msgspec.ValidationError as error:
        raise ConstraintViolated(f"{PARAMETER}: {error}", PARAMETER) from None
    if len(wish.fields) > _MOST_FIELDS:
        raise ConstraintViolated(
            f"{PARAMETER}.fields: {len(wish.fields)} are more than {_MOST_FIELDS}", PARAMETER
        )
    _starts(wish.cursor)
    if wish.budget is None:
        return Wish(default, wish.cursor, wish.fields)
    if not _LEAST_BUDGET <= wish.budget <= most:
        raise ConstraintViolated(
            f"{PARAMETER}.budget: {wish.budget} is not between {_LEAST_BUDGET} and {most}",
            "answers.max_budget",
            hint="ask for less, and go on with the cursor",
        )
    return wish


def wish_schema(default: int | None, most: int) -> dict[str, Any]:
    """JSON Schema of the parameter, for the schemas of all operations."""
    found = msgspec.json.schema(Wish)["$defs"]["Wish"]
    properties = found["properties"]
    described = properties["budget"].pop("anyOf", [{}])[0].get("description", "")
    described = properties["budget"].pop("description", described)
    properties["budget"] = {
        "type": "integer",
        "minimum": _LEAST_BUDGET,
        "maximum": most,
        "description": described,
        **({} if default is None else {"default": default}),
    }
    return {
        "type": "object",
        "description": "How the answer should be.",
        "properties": properties,
        "additionalProperties": False,
    }


def fitted(answer: Mapping[str, Any], wish: Wish) -> dict[str, Any]:
    """The answer as it was wished for."""
    chosen = _projected(answer, _tree(wish.fields)) if wish.fields else dict(answer)
    starts = _starts(wish.cursor)
    members = {path: _Member.of(value, starts.get(path, 0)) for path, value in _members(chosen)}
    room = wish.budget
    if not any(starts.values()) and (room is None or _size(chosen) <= room):
        return dict(chosen)
    rest = _replaced(chosen, {path: member.empty for path, member in members.items()})
    left = None if room is None else room - _size(rest) - _FOR_NOTE
    if left is not None and left < 0:
        return {NOTE: _too_much(chosen)}
    shares = _shares({path: member.size for path, member in members.items()}, left)
    cut = {path: member.cut(shares[path]) for path, member in members.items()}
    whole = _replaced(chosen, {path: part.value for path, part in cut.items()})
    note = _note({path: part for path, part in cut.items() if part.of is not None})
    return {NOTE: note, **whole}


@dataclass(frozen=True, slots=True)
class _Part:
    """What is shown of a member."""

    value: Any
    start: int = 0
    end: int = 0
    of: int | None = None
    """How many items there are; None: all of it is shown, or it has no items."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A part of an answer that can be cut."""

    value: Any
    start: int
    items: tuple[Any, ...] | None
    """From `start`; None for a text."""
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, value: Any, start: int) -> _Member:
        if isinstance(value, str):
            return cls(value, 0, None, (_size(value),))
        items = tuple(value.items()) if isinstance(value, Mapping) else tuple(value)
        shown = items[start:]
        return cls(value, start, shown, tuple(_size(item) + 1 for item in shown))

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def empty(self) -> Any:
        return "" if self.items is None else {} if isinstance(self.value, Mapping) else []

    def cut(self, room: int | None) -> _Part:
        if self.items is None:
            return _Part(_shortened(self.value, room))
        count, used = 0, 0
        while count < len(self.sizes) and (room is None or used + self.sizes[count] <= room):
            used += self.sizes[count]
            count += 1
        shown: Sequence[Any] = self.items[:count]
        if not count and self.items and room is not None:  # one item is more than there is room
            shown, count = (_shrunk(self.items[0], room),), 1
        total = self.start + len(self.items)
        value = dict(shown) if isinstance(self.value, Mapping) else list(shown)
        if not self.start and count == len(self.items):
            return _Part(value)
        return _Part(value, self.start, self.start + count, total)


def _members(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """What can be cut: lists, mappings of many names and long texts, through objects."""
    for name, item in value.items():
        here = (*path, name)
        if (isinstance(item, list | str) and item) or (
            isinstance(item, Mapping) and len(item) > _MANY
        ):
            yield here, item
        elif isinstance(item, Mapping):
            yield from _members(item, here)


def _replaced(
    value: Mapping[str, Any], parts: Mapping[Path, Any], path: Path = ()
) -> dict[str, Any]:
    return {
        name: parts[here]
        if (here := (*path, name)) in parts
        else _replaced(item, parts, here)
        if isinstance(item, Mapping)
        else item
        for name, item in value.items()
    }


def _shares(sizes: Mapping[Path, int], room: int | None) -> dict[Path, int | None]:
    """How much room each member gets: what is small stays whole, the others share the rest."""
    if room is None:
        return dict.fromkeys(sizes)
    shares: dict[Path, int | None] = {}
    waiting = sorted(sizes, key=lambda path: sizes[path])
    for index, path in enumerate(waiting):
        share = room // (len(waiting) - index)
        shares[path] = given = min(sizes[path], share)
        room -= given
    return shares


def _shortened(text: str, room: int | None) -> str:
    """The beginning and, twice as long, the end of a text: logs say the most there."""
    raw = text.encode("utf-8", "surrogatepass")
    if room is None or _size(text) <= room:
        return text
    growth = max(_size(text) / max(len(raw), 1), 1.0)  # escapes make a text longer
    keep = max(int((room - 48) / growth), 0)
    head, tail = keep // 3, keep - keep // 3
    first = raw[:head].decode("utf-8", "ignore")
    last = raw[len(raw) - tail :].decode("utf-8", "ignore") if tail else ""
    short = f"{first}[... {len(raw) - keep} bytes left out ...]{last}"
    return short if _size(short) <= room else f"[{len(raw)} bytes left out]"


def _shrunk(item: Any, room: int) -> Any:
    """One item that is too long, cut as an answer is: of its kind, so that schemas stay true."""
    if isinstance(item, str):
        return _shortened(item, room)
    if isinstance(item, tuple):  # of a mapping: its name stays
        name, value = item
        return name, _shrunk(value, max(room - _size(name), 0))
    if isinstance(item, Mapping):
        small = fitted(item, Wish(budget=room + _FOR_NOTE))
        small.pop(NOTE, None)
        return small if _size(small) <= room else {}
    return []


def _note(parts: Mapping[Path, _Part]) -> dict[str, Any]:
    """What is shown of each list that is not whole, and how to go on."""
    shown = {
        ".".join(path): f"{part.start + 1} to {part.end} of {part.of}"
        for path, part in list(parts.items())[:8]
        if len(".".join(path)) < 60
    }
    more = {path: part.end for path, part in parts.items() if part.end < (part.of or 0)}
    cursor = ";".join(
        f"{'.'.join(path)}={end}" for path, end in more.items() if not _unsayable(path)
    )
    note: dict[str, Any] = {"complete": not more, "shown": shown}
    if cursor and len(cursor) <= _LONGEST_CURSOR:
        note["cursor"] = cursor
        note["next"] = (
            "Call again with answer.cursor for what follows. To see more at once, ask for fewer "
            "fields (answer.fields), a narrower selection or a larger answer.budget."
        )
    elif more or not shown:
        note["next"] = "Something is cut. Ask for a larger answer.budget, or for less."
    return note


def _unsayable(path: Path) -> bool:
    """Whether a cursor cannot name a path: nothing that we answer is called so."""
    return any(sign in name for name in path for sign in ".;=")


def _too_much(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "complete": False,
        "bytes": _size(answer),
        "fields": list(answer)[:20],
        "next": "Too much for the budget. Choose with answer.fields, or raise answer.budget.",
    }


def _starts(cursor: str) -> dict[Path, int]:
    """ConstraintViolated if a cursor is none of ours."""
    found: dict[Path, int] = {}
    if len(cursor) > _LONGEST_CURSOR:
        raise ConstraintViolated(
            f"{PARAMETER}.cursor: is longer than {_LONGEST_CURSOR} characters",
            PARAMETER,
            hint="give _answer.cursor of the answer before",
        )
    for part in filter(None, cursor.split(";")):
        path, _, number = part.rpartition("=")
        if not path or not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise ConstraintViolated(
                f"{PARAMETER}.cursor: {cursor[:100]!r} is no cursor",
                PARAMETER,
                hint="give _answer.cursor of the answer before",
            )
        found[tuple(path.split("."))] = int(number)
    return found


def _tree(fields: Sequence[str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for field in fields:
        inner = tree
        for name in field.split(".")[:16]:
            inner = inner.setdefault(name, {})
    return tree


def _projected(value: Any, tree: Mapping[str, Any]) -> Any:
    """Only what the tree names; lists are gone through."""
    if not tree:
        return value
    if isinstance(value, Mapping):
        return {name: _projected(value[name], tree[name]) for name in tree if name in value}
    if isinstance(value, list):
        return [_projected(item, tree) for item in value]
    return value


def _size(value: Any) -> int:
    return len(msgspec.json.encode(value))
