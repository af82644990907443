"""A document that people wrote, as the dataclass that it should be, and back. Pure.

All mistakes are found, not only the first, and each is told with its path, its value and the
way out. What a field takes is what its annotation says; null is the same as leaving it out.
"""

from __future__ import annotations

import difflib
import enum
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from kvestigate.errors import InputError

T = TypeVar("T")

_LONGEST = 60
"""Characters of a value that a message quotes."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a document."""

    path: str
    """`k8s.ports[0].port`"""
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Mistakes(Exception):
    """What is wrong with a document: at least one problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


def read(kind: type[T], document: Any, path: str = "") -> T:
    """The dataclass that `document` is, or Mistakes with all that is wrong with it.

    A dataclass with a class variable `SHORTHAND` may be given as the value of that field alone.
    """
    reader = _Reader()
    found = reader.value(kind, document, path)
    if reader.problems:
        raise Mistakes(reader.problems)
    made: T = found
    return made


def written(value: Any) -> Any:
    """Plain data that `read` takes for the same `value`: fields that have their defaults go."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: written(inner)
            for field in fields(value)
            if (inner := getattr(value, field.name)) != _default(field)
        }
    if isinstance(value, Mapping):
        return {key: written(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [written(inner) for inner in value]
    return value.value if isinstance(value, enum.Enum) else value


def shown(value: Any) -> str:
    """`value` as a message quotes it."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def suggestion(wrong: str, known: Iterable[str], *, prefix: str = "") -> str:
    """`did you mean ...?` if something is near, else all there is."""
    names = list(known)
    near = difflib.get_close_matches(wrong.lower(), names, n=1)
    if near:
        return f"did you mean {prefix}{near[0]}?"
    return f"there are: {', '.join(sorted(names))}"


_WRONG: Any = object()
"""In place of a value that could not be read: its problem is in the list already."""


class _Reader:
    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def value(self, kind: Any, given: Any, path: str) -> Any:
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            return self._optional(kind, given, path)
        if origin is tuple:
            return self._list(get_args(kind)[0], given, path)
        if origin is not None and issubclass(origin, Mapping):
            return self._mapping(get_args(kind)[1], given, path)
        if kind is Any:
            return given
        if is_dataclass(kind):
            return self._dataclass(kind, given, path)
        if issubclass(kind, enum.Enum):
            return self._choice(kind, given, path)
        return self._scalar(kind, given, path)

    def _wrong(self, path: str, message: str, hint: str = "") -> Any:
        self.problems.append(Problem(path, message, hint))
        return _WRONG

    def _optional(self, kind: Any, given: Any, path: str) -> Any:
        [inner] = [it for it in get_args(kind) if it is not type(None)]
        return None if given is None else self.value(inner, given, path)

    def _list(self, inner: Any, given: Any, path: str) -> Any:
        if not isinstance(given, list | tuple):
            return self._wrong(path, f"{shown(given)} is not a list", "write [a, b], or - a")
        return tuple(self.value(inner, it, f"{path}[{index}]") for index, it in enumerate(given))

    def _mapping(self, inner: Any, given: Any, path: str) -> Any:
        if not isinstance(given, Mapping):
            return self._wrong(path, f"{shown(given)} is not a mapping", "write {name: value}")
        return {key: self.value(inner, it, f"{path}.{key}") for key, it in given.items()}

    def _dataclass(self, kind: Any, given: Any, path: str) -> Any:
        shorthand = getattr(kind, "SHORTHAND", "")
        if shorthand and isinstance(given, int | str):
            given = {shorthand: given}
        known = {field.name: field for field in fields(kind) if field.init}
        if not isinstance(given, Mapping):
            return self._wrong(
                path, f"{shown(given)} is not a mapping", f"its fields are {', '.join(known)}"
            )
        before = len(self.problems)
        dot = f"{path}." if path else ""
        for key in given:
            if key not in known:
                self._wrong(f"{dot}{key}", "no such field", suggestion(key, known, prefix=dot))
        hints = _hints(kind)
        values = {
            name: self.value(hints[name], given[name], dot + name)
            for name in known
            if given.get(name) is not None
        }
        for name, field in known.items():
            if name not in values and _default(field) is MISSING:
                self._wrong(dot + name, "the field is required")
        if len(self.problems) > before:
            return _WRONG
        try:
            return kind(**values)
        except InputError as error:  # a dataclass may check itself
            return self._refused(error, known, path)

    def _refused(self, error: InputError, known: Iterable[str], path: str) -> Any:
        """What a dataclass says of itself, at the field that it names."""
        where = error.where or ""
        name = where.rpartition(".")[2]
        place = ".".join(filter(None, (path, name))) if name in known else path
        return self._wrong(place, error.message.removeprefix(f"{where}: "), error.hint or "")

    def _choice(self, kind: type[enum.Enum], given: Any, path: str) -> Any:
        values = [str(it.value) for it in kind]
        if isinstance(given, str) and given in values:
            return kind(given)
        hint = suggestion(str(given), values)
        return self._wrong(path, f"{shown(given)} is none of {', '.join(values)}", hint)

    def _scalar(self, kind: type[Any], given: Any, path: str) -> Any:
        if kind is str and isinstance(given, int | float) and not isinstance(given, bool):
            return str(given)  # `cpu: 4` is what people write
        if kind is float and isinstance(given, int) and not isinstance(given, bool):
            return float(given)
        if isinstance(given, kind) and not (kind is not bool and isinstance(given, bool)):
            return given
        quoted = kind is str and isinstance(given, bool)
        hint = f'write "{str(given).lower()}", in quotes' if quoted else ""
        return self._wrong(path, f"{shown(given)} is not {_NAMES[kind]}", hint)


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
