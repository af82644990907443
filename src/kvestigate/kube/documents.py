"""Documents that people write: read into dataclasses, with every mistake told. Pure.

`read` takes what the annotations of a dataclass say, and finds all mistakes, not only the first.
Each is told with its path, its value and the way out. Null is the same as leaving a field out.

- A field `Annotated[T, function]` is what `function(value, path)` returns; an InputError that it
  raises is a mistake of that field. `text` is such a function.
- A dataclass checks itself in `__post_init__`, with an InputError whose `where` ends in the field.
- `SHORTHAND` is a class variable of a dataclass that may be given as the value of that field alone.
- `IGNORED` is a class variable with the fields that are known and have no meaning here.

`one_document` is a file with one document. Mistakes that are found in the value of the file, by
`read` or by other checks, get the line that the file has them in.

`first_document` is for files that hold secrets, which are kubeconfigs: no error quotes the text.
A `Section` is a mapping of such a file; it is read field by field, because one entry that is wrong
must not hide the others.
"""

from __future__ import annotations

import base64
import binascii
import enum
import re
import types
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, cached_property
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from kvestigate.errors import ConfigError, InputError, UsageError, nearest
from kvestigate.kube import block_yaml
from kvestigate.kube.yaml_documents import Node, load, load_first, nodes_at
from kvestigate.kube.yaml_scalars import Dialect

T = TypeVar("T")

_LONGEST = 60
"""Characters of a value that a message quotes."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Problem(Struct, frozen=True):
    """One mistake in a document."""

    path: str
    """`k8s.ports[0].port`"""
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Mistakes(InputError):
    """What is wrong with a document: at least one problem."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        hint = next((problem.hint for problem in self.problems if problem.hint), None)
        super().__init__("; ".join(map(str, self.problems)), hint=hint)


class File(Struct, frozen=True, dict=True):
    """A file with one document."""

    source: str
    """The file's name, `-` for standard input."""
    data: bytes
    value: Any
    repeated: tuple[str, ...] = ()
    """`line 7: key "a" already set in map`: keys given twice, of which the last counts."""

    def __repr__(self) -> str:
        return f"File({self.source!r})"  # what it holds may be secret

    @contextmanager
    def mistakes(self) -> Iterator[None]:
        """Give each mistake that is raised in the block the file, and the line if it is known."""
        try:
            yield
        except UsageError as error:
            raise self._with_lines(_problems(error)) from None

    def _with_lines(self, problems: Sequence[Problem]) -> InputError:
        """The error that tells people all problems of the file, each with its line."""
        places = [f"{self.source}:{self.line(problem.path)}" for problem in problems]
        if len(problems) == 1:
            [only] = problems
            return InputError(str(only), where=places[0], hint=only.hint or None)
        lines = [f"{len(problems)} mistakes"]
        for place, problem in zip(places, problems, strict=True):
            lines.append(f"{place}: {problem}" + (f"; {problem.hint}" if problem.hint else ""))
        return InputError("\n".join(lines), where=self.source)

    def line(self, path: str) -> int:
        """The line of the field or, if it is absent, of the nearest field around it."""
        *_, (key, _) = [(None, None), *self._nodes(_steps(path))]
        return key.start_mark.line + 1 if key else 1

    def where(self, *path: str | int) -> str:
        """`file:line:column` of the value at `path`, or of its nearest existing parent."""
        *_, (_, value) = [(None, None), *self._nodes(path)]
        mark = value and value.start_mark
        return f"{self.source}:{mark.line + 1}:{mark.column + 1}" if mark else self.source

    def _nodes(self, path: Sequence[str | int]) -> Iterable[tuple[Node, Node]]:
        return () if self._root is None else nodes_at(self._root, path)

    @cached_property
    def _root(self) -> Node | None:
        """The document with its positions, which only messages need."""
        try:
            document = load_first(self.data, self.source)
        except InputError:
            return None  # JSON may hold what is not YAML
        return document and document[1]


def one_document(data: bytes, source: str, what: str, dialect: Dialect = Dialect.PYTHON) -> File:
    """The file, which has to hold exactly one document: a `task`, a `configuration`."""
    documents = load(data, source, dialect=dialect)
    if len(documents) != 1:
        raise InputError(
            f"holds {len(documents)} documents, not one {what}",
            where=source,
            hint="put each into a file of its own" if documents else None,
        )
    return File(source, data, documents[0].value)


def first_document(data: bytes, source: str) -> File:
    """The first document of a file that may hold secrets. Its value is None if there is none."""
    try:
        simple = block_yaml.read(data.decode()) if data.isascii() else None
        if simple is not None:
            return File(source, data, simple)
        loaded = load_first(data, source)
    except InputError as error:
        where = error.where or source
        raise ConfigError(
            f"{where}: not YAML: {error.message.removeprefix(f'{where}: ')}",
            hint=error.hint or "fix the file at that place, or restore it",
        ) from None
    if loaded is None:
        return File(source, data, None)
    return File(source, data, loaded[0].value, loaded[0].repeated)


def line_of(data: bytes, path: str) -> int:
    """The line of the field in a file or, if it is absent, of the nearest field around it."""
    return File("-", data, None).line(path)


def _steps(path: str) -> list[str | int]:
    return [name or int(index) for name, index in _STEP.findall(path)]


class Section(Struct, frozen=True):
    """One mapping of a file that may hold secrets, read with errors that name field and place."""

    document: File
    path: tuple[str | int, ...]
    label: str
    """How messages call it: `user "admin"`; empty at the top of the file."""
    values: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Section({self.document.source!r}, {self.label!r})"

    def where(self, *keys: str | int) -> str:
        return self.document.where(*self.path, *keys)

    def error(self, message: str, *keys: str | int, hint: str | None = None) -> ConfigError:
        """A failure at the field `keys` of this section."""
        label = f"{self.label}: " if self.label else ""
        return ConfigError(f"{self.where(*keys)}: {label}{message}", hint=hint)

    def read(self, kind: type[T], key: str) -> T | None:
        """The field as `kind`; None when it is absent."""
        reader = _Reader(exact=True)
        value: T | None = reader.value(kind | None, self.values.get(key), key)
        for problem in reader.problems:
            message = f"{problem.path} {problem.message}"
            raise self.error(message, *_steps(problem.path), hint=problem.hint or None)
        return value

    def text(self, key: str) -> str:
        return self.read(str, key) or ""

    def flag(self, key: str) -> bool:
        return self.read(bool, key) or False

    def strings(self, key: str) -> tuple[str, ...]:
        return self.read(tuple[str, ...], key) or ()

    def data(self, key: str) -> bytes | None:
        """The bytes of a base64 field; None when it is absent or empty."""
        encoded = self.text(key).replace("\n", "").replace("\r", "")
        try:
            return base64.b64decode(encoded, validate=True) or None
        except (binascii.Error, ValueError):
            # ValueError: characters beyond ASCII.
            raise self.error(
                f"{key} is not base64", key, hint=f"encode it with: base64 -w0 FILE, into {key}"
            ) from None

    def section(self, key: str, label: str = "") -> Section | None:
        """The mapping under `key`; None when absent."""
        values = self.read(dict[str, Any], key)
        if values is None:
            return None
        return Section(self.document, (*self.path, key), label or self.label, values)

    def sections(self, key: str) -> list[Section]:
        """The mappings in the list under `key`."""
        return [
            Section(self.document, (*self.path, key, index), self.label, values)
            for index, values in enumerate(self.read(tuple[dict[str, Any], ...], key) or ())
        ]


def _problems(error: UsageError) -> Sequence[Problem]:
    if isinstance(error, Mistakes):
        return error.problems
    where = getattr(error, "where", None) or ""
    return [Problem(where, error.message.removeprefix(f"{where}: "), error.hint or "")]


def read(kind: type[T], document: Any, path: str = "") -> T:
    """The dataclass that `document` is, or Mistakes with all that is wrong with it."""
    reader = _Reader()
    value: T = reader.value(kind, document, path)
    if reader.problems:
        raise Mistakes(reader.problems)
    return value


def written(value: Any) -> Any:
    """Plain data that `read` takes for the same `value`: fields that have their defaults go."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            declared.name: written(inner)
            for declared in fields(value)
            if (inner := getattr(value, declared.name)) != _default(declared)
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


def type_name(value: object) -> str:
    """How messages call the type of a value that they must not quote: `a number`."""
    return _TYPES.get(type(value), type(value).__name__)


def suggestion(wrong: str, known: Iterable[str], *, prefix: str = "") -> str:
    """`did you mean ...?` if a known name is similar, else all known names."""
    names = list(known)
    near = nearest(wrong.lower(), names)
    if near:
        return f"did you mean {prefix}{near}?"
    return f"there are: {', '.join(sorted(names))}"


def known_fields(document: Mapping[str, Any], known: Collection[str], path: str) -> None:
    """Refuse fields that are not `known`; `path` ends with a dot or is empty."""
    for key in document:
        if key not in known:
            hint = suggestion(key, known, prefix=path)
            raise InputError("no such field", where=f"{path}{key}", hint=hint)


def mapping(value: Any, path: str) -> Mapping[str, Any]:
    """A mapping; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{shown(value)} is not a mapping", where=path, hint=_MAPPING)
    return value


def listed(value: Any, path: str) -> Sequence[Any]:
    """A list; null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise InputError(f"{shown(value)} is not a list", where=path, hint=_LIST)
    return value


def text(value: Any, path: str) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{shown(value)} is not text", where=path)
    return value


class _Anything:
    def __contains__(self, name: object) -> bool:
        return True


ANYTHING: Container[str] = _Anything()
"""For `IGNORED`: every field that is not one of the dataclass."""

_MAPPING, _LIST = "write {name: value}", "write [a, b], or - a"


_WRONG: Any = object()
"""In place of a value that could not be read: its problem is in the list already."""


class _Reader:
    def __init__(self, *, exact: bool = False) -> None:
        self.problems: list[Problem] = []
        self._exact = exact
        """A number is not taken for text, and messages name the type of a value, which may be a
        secret, instead of the value."""

    def value(self, kind: Any, given: Any, path: str) -> Any:
        origin = get_origin(kind)
        if origin is Annotated:
            function = next(filter(callable, kind.__metadata__), None)
            if function is None:  # a word to others who read the type
                return self.value(get_args(kind)[0], given, path)
            return self._converted(function, given, path)
        if origin in (Union, types.UnionType):
            return self._optional(kind, given, path)
        if origin in (tuple, frozenset):
            return self._list(origin, get_args(kind)[0], given, path)
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

    def _mistyped(self, path: str, given: Any, wanted: str, hint: str = "") -> Any:
        if self._exact:
            return self._wrong(path, f"must be {wanted}, not {type_name(given)}", hint)
        return self._wrong(path, f"{shown(given)} is not {wanted}", hint)

    def _converted(self, function: Any, given: Any, path: str) -> Any:
        try:
            return function(given, path)
        except UsageError as error:
            for problem in _problems(error):
                place = problem.path if problem.path.startswith(path) else path
                self._wrong(place, problem.message, problem.hint)
            return _WRONG

    def _optional(self, kind: Any, given: Any, path: str) -> Any:
        [inner] = [option for option in get_args(kind) if option is not type(None)]
        return None if given is None else self.value(inner, given, path)

    def _list(self, kind: type[Any], inner: Any, given: Any, path: str) -> Any:
        if not isinstance(given, list | tuple):
            return self._mistyped(path, given, "a list", _LIST)
        return kind(
            [self.value(inner, item, f"{path}[{index}]") for index, item in enumerate(given)]
        )

    def _mapping(self, inner: Any, given: Any, path: str) -> Any:
        if not isinstance(given, Mapping):
            return self._mistyped(path, given, "a mapping", _MAPPING)
        return {key: self.value(inner, item, f"{path}.{key}") for key, item in given.items()}

    def _dataclass(self, kind: Any, given: Any, path: str) -> Any:
        shorthand = getattr(kind, "SHORTHAND", "")
        if shorthand and isinstance(given, int | str):
            given = {shorthand: given}
        given = {} if given is None else given
        known = {declared.name: declared for declared in fields(kind) if declared.init}
        if not isinstance(given, Mapping):
            return self._mistyped(path, given, "a mapping", f"its fields are {', '.join(known)}")
        before = len(self.problems)
        dot = f"{path}." if path else ""
        ignored: Any = getattr(kind, "IGNORED", ())
        for key in given:
            if key not in known and key not in ignored:
                hint = suggestion(key, [*known, *ignored], prefix=dot)
                self._wrong(f"{dot}{key}", "no such field", hint)
        hints = _hints(kind)
        values = {
            name: self.value(hints[name], given[name], dot + name)
            for name in known
            if given.get(name) is not None
        }
        for name, declared in known.items():
            if name not in values and _default(declared) is MISSING:
                self._wrong(dot + name, "the field is required")
        if len(self.problems) > before:
            return _WRONG
        try:
            return kind(**values)
        except UsageError as error:  # a dataclass may check itself
            for problem in _problems(error):
                name = problem.path.rpartition(".")[2]
                place = dot + name if name in known else path
                self._wrong(place, problem.message, problem.hint)
            return _WRONG

    def _choice(self, kind: type[enum.Enum], given: Any, path: str) -> Any:
        values = [str(member.value) for member in kind]
        if isinstance(given, str) and given in values:
            return kind(given)
        hint = suggestion(str(given), values)
        return self._wrong(path, f"{shown(given)} is none of {', '.join(values)}", hint)

    def _scalar(self, kind: type[Any], given: Any, path: str) -> Any:
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if kind is str and number and not self._exact:
            return str(given)  # `cpu: 4` is what people write
        if kind is float and isinstance(given, int) and not isinstance(given, bool):
            return float(given)
        if isinstance(given, kind) and not (kind is not bool and isinstance(given, bool)):
            return given
        hint = ""
        if kind is str and isinstance(given, bool | int | float):
            hint = "put it in quotes" if self._exact else f'write "{str(given).lower()}", in quotes'
        return self._mistyped(path, given, _NAMES[kind], hint)


_TYPES = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _default(declared: Field[Any]) -> Any:
    if declared.default_factory is not MISSING:
        return declared.default_factory()
    return declared.default
