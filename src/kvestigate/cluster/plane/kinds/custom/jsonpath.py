"""The JSON paths of definitions: `.spec.replicas`, `.items[?(@.type=="Ready")].status`. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_STEP = re.compile(
    r"""\.?\[\?\(\s*@(?P<left>(?:\.[\w-]+)*)\s*(?:(?P<op>==|!=|>=|<=|>|<)\s*(?P<right>[^)]+?)\s*)?\)\]
    | \.?\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\]
    | \.?\[(?P<index>-?\d+)\]
    | \.?\[(?P<start>-?\d+)?:(?P<end>-?\d+)?(?::(?P<step>[1-9]\d*)?)?\]
    | \.?(?P<all>\[\*\]|(?<=\.)\*)
    | \.(?P<name>(?:\\.|[^.\[\]\\*])+)""",
    re.VERBOSE,
)


_SLICE = ("start", "end", "step")


class Unreadable(ValueError):
    """The text is not a supported JSON path."""


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path; raises Unreadable."""
    path = text.removeprefix("$")
    steps: list[Step] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise Unreadable(text)
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def find(value: Any, steps: tuple[Step, ...]) -> list[Any]:
    """Everything that the path leads to."""
    values: Iterable[Any] = [value]
    for step in steps:
        values = [inner for each in values for inner in step(each)]
    return list(values)


def names(text: str) -> tuple[str, ...]:
    """The field names of a path that has nothing else: `.spec.replicas`."""
    return tuple(part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", text)[1:])


def _step(match: re.Match[str]) -> Step:
    if match["name"] is not None:
        return _field(match["name"].replace("\\", ""))
    if (key := match["single"] if match["single"] is not None else match["double"]) is not None:
        return _field(key)
    if match["index"] is not None:
        return _index(int(match["index"]))
    if match["all"] is not None:
        return _all
    if match["left"] is None:
        return _slice(*(None if text is None else int(text) for text in match.group(*_SLICE)))
    return _filter(match["left"], match["op"], match["right"])


def _field(name: str) -> Step:
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _index(position: int) -> Step:
    def step(value: Any) -> Iterable[Any]:
        if not isinstance(value, list) or not -len(value) <= position < len(value):
            return []
        return [value[position]]

    return step


def _slice(start: int | None, end: int | None, step: int | None) -> Step:
    """A slice with Go's bounds: beyond the end of the list it is empty."""

    def cut(value: Any) -> Iterable[Any]:
        if not isinstance(value, list):
            return []
        size = len(value)
        first = 0 if start is None else start + size * (start < 0)
        last = size if end is None else end + size * (end < 0)
        return value[first:last:step] if 0 <= first <= last <= size else []

    return cut


def _all(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else []


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    ">=": lambda left, right: left >= right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    "<": lambda left, right: left < right,
}


def _filter(path: str, operator: str | None, literal: str | None) -> Step:
    left = parse(path)
    right = None if literal is None else _literal(literal)

    def step(value: Any) -> Iterator[Any]:
        for each in value if isinstance(value, list) else []:
            values = find(each, left)
            if operator is None:
                if values:
                    yield each
            elif any(_holds(operator, one, right) for one in values):
                yield each

    return step


def _holds(operator: str, left: Any, right: Any) -> bool:
    if isinstance(left, str) is not isinstance(right, str) or left is None or right is None:
        return False
    return _COMPARE[operator](left, right)


def _literal(text: str) -> Any:
    if text[0] in "'\"" and text[-1] == text[0]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        raise Unreadable(text) from None
