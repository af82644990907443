"""Paths into objects: written into the causes of a Status, and read from CRD columns and flags.

`Path` builds the text of a validation error's field, `spec.containers[0].image`. `Query` is the
reading side: the part of kubectl's JSONPath that columns and options use, that is names, keys,
indexes, `*` and `[?(@.type=="Ready")]`. A query that meets a missing field finds nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from kvestigate.errors import InputError

_HINT = 'write it like .spec.containers[*].image or .status.conditions[?(@.type=="Ready")].status'


class Path:
    """An immutable path that costs one small object a step and becomes text only if asked."""

    __slots__ = ("_parent", "_step")

    def __init__(self, name: str = "") -> None:
        """The path of a top-level field, or of the object itself."""
        self._parent: Path | None = None
        self._step = name

    def child(self, *names: str) -> Path:
        """A field of the object at this path."""
        path = self
        for name in names:
            path = path._extend(f".{name}")
        return path

    def index(self, position: int) -> Path:
        """An element of the list at this path."""
        return self._extend(f"[{position}]")

    def key(self, name: str) -> Path:
        """An entry of the map at this path, whose keys are data: `metadata.labels[app]`."""
        return self._extend(f"[{name}]")

    def _extend(self, step: str) -> Path:
        path = Path(step)
        path._parent = self
        return path

    def __str__(self) -> str:
        steps = []
        path: Path | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        return "".join(reversed(steps)).removeprefix(".")

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Path) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


Step = Callable[[Any], Iterator[Any]]


class Query:
    """A compiled path: `find` gives every value it selects, `first` the first one."""

    __slots__ = ("_keys", "_steps", "text")

    def __init__(self, text: str, steps: tuple[Step, ...], keys: tuple[str, ...] | None) -> None:
        self.text = text
        self._steps = steps
        self._keys = keys
        """The names, if the path is only names: then reading is a chain of dict lookups."""

    def find(self, obj: Any) -> Iterator[Any]:
        """Every value that the path selects, in document order."""
        values = iter((obj,))
        for step in self._steps:
            values = _each(step, values)
        return values

    def first(self, obj: Any, default: Any = None) -> Any:
        """The first value that the path selects."""
        if self._keys is None:
            return next(self.find(obj), default)
        for key in self._keys:
            if not isinstance(obj, dict) or key not in obj:
                return default
            obj = obj[key]
        return obj

    def __repr__(self) -> str:
        return f"Query({self.text!r})"


def _each(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


def get(obj: Any, path: Path | str, default: Any = None) -> Any:
    """The first value at `path`, or the default."""
    return parse(str(path)).first(obj, default)


def find(obj: Any, path: Path | str) -> Iterator[Any]:
    """Every value at `path`."""
    return parse(str(path)).find(obj)


_NAME = re.compile(r"(?:\\.|[^.\[\]{}\\])+", re.DOTALL)
_BRACKET = re.compile(
    r"""\[\s*(?:
        (?P<all>\*)
      | '(?P<single>(?:\\.|[^'\\])*)'
      | "(?P<double>(?:\\.|[^"\\])*)"
      | \?\((?P<filter>(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"()])*)\)
      | (?P<index>-?[0-9]{1,9})
      | (?P<key>[^\[\]'"?*]*[^\[\]'"?*\s])
    )\s*\]""",
    re.VERBOSE | re.DOTALL,
)
_FILTER = re.compile(
    r"""\s*@(?P<path>(?:\.(?:\\.|[^\s.\[\]=!<>\\])+|\[[^\]]*\])*)\s*
    (?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<literal>'.*'|".*"|[^\s'"]+)\s*)?""",
    re.VERBOSE | re.DOTALL,
)
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=1024)
def parse(text: str) -> Query:
    """Compile a path; braces and the leading `$` or dot are optional, as kubectl has it."""
    body = text.strip()
    if body.startswith("{") and body.endswith("}"):
        body = body[1:-1].strip()
    position = 1 if body.startswith("$") else 0
    steps: list[Step] = []
    keys: list[str] | None = []
    while position < len(body):
        if body[position] == "[":
            match = _BRACKET.match(body, position)
            if match is None:
                raise _error(text, body[position:], "does not read as [index], ['key'] or [?(...)]")
            step, key = _bracket(match, text)
        else:
            match = _NAME.match(body, position + (body[position] == "."))
            if match is None and body[position:] == "." and not steps:
                break
            if match is None:
                raise _error(text, body[position:], "does not start with a field name")
            key = None if match[0] == "*" else _UNESCAPE.sub(r"\1", match[0])
            step = _all_step if key is None else _key_step(key)
        steps.append(step)
        keys = [*keys, key] if keys is not None and key is not None else None
        position = match.end()
    return Query(text, tuple(steps), None if keys is None else tuple(keys))


def _bracket(match: re.Match[str], text: str) -> tuple[Step, str | None]:
    kind = match.lastgroup or ""
    content = match[kind]
    if kind == "all":
        return _all_step, None
    if kind == "filter":
        return _filter_step(content, text), None
    if kind == "index":
        return _index_step(content), None
    key = content if kind == "key" else _UNESCAPE.sub(r"\1", content)
    return _key_step(key), key


def _key_step(key: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and key in value:
            yield value[key]

    return step


def _index_step(digits: str) -> Step:
    position = int(digits)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            if -len(value) <= position < len(value):
                yield value[position]
        elif isinstance(value, dict) and digits in value:
            # A cause names map entries the same way: data[0] of a ConfigMap.
            yield value[digits]

    return step


def _all_step(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _filter_step(condition: str, text: str) -> Step:
    match = _FILTER.fullmatch(condition)
    if match is None:
        raise _error(text, condition, "is not a condition like @.name==value")
    query = parse(match["path"] or ".")
    if match["operator"] is None:
        return lambda value: (
            item for item in _all_step(value) if any(True for _ in query.find(item))
        )
    compare = _COMPARISONS[match["operator"]]
    literal = _literal(match["literal"])
    return lambda value: (
        item
        for item in _all_step(value)
        if any(_holds(compare, found, literal) for found in query.find(item))
    )


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return _UNESCAPE.sub(r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") else int(text)
    return text


def _holds(compare: Callable[[Any, Any], bool], found: Any, literal: Any) -> bool:
    # Values of different kinds are unlike each other and in no order; True is not 1 here.
    if _kind(found) is not _kind(literal):
        return compare is operator.ne
    return compare(found, literal)


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)


def _error(text: str, part: str, problem: str) -> InputError:
    return InputError(f"path {text!r}: {part!r} {problem}", hint=_HINT)
