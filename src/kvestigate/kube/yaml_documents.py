"""YAML or JSON text to documents, read the way kubectl reads manifests or PyYAML all else.

kubectl turns YAML into JSON with rules of its own, between YAML 1.1 and 1.2: `yes`, `on` and
`y` are booleans and `010` is eight, but a date or `1:30` stays a string; keys become strings;
`1.0` becomes `1`. A file that is no manifest has `Dialect.PYTHON`, PyYAML's rules, with keys that
become strings all the same. Here a key given twice is an error, unless the caller is lenient and
looks at what the document says of them.

PyYAML is slow to import, so that happens on the first call: nothing else may import it.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kvestigate.errors import InputError
from kvestigate.kube import pauses
from kvestigate.kube.yaml_scalars import Dialect, NotFinite, plain

Node = Any
"""A node of PyYAML's; its stubs do not know the attribute `id` that tells the kinds apart."""


class Document(Struct, frozen=True):
    """One document of a file."""

    value: Any
    source: str
    """The file's name, `-` for standard input."""
    line: int
    """Where it begins, from 1."""
    repeated: tuple[str, ...] = ()
    """`line 7: key "a" already set in map`: keys given twice, of which the last counts."""

    @property
    def where(self) -> str:
        return f"{self.source}:{self.line}"


def load(
    text: str | bytes,
    source: str = "-",
    *,
    dialect: Dialect = Dialect.KUBECTL,
    lenient: bool = False,
    most: int | None = None,
) -> list[Document]:
    """All documents of a text that are not empty. InputError says where it does not parse.

    With `most`, a text of more values and brackets than that is refused before it is read.
    """
    if isinstance(text, bytes):
        text = _decoded(text, source)
    text = text.removeprefix("\ufeff")
    if lenient:
        return list(_Yaml(text, source, lenient=True, most=most).documents())
    if text.lstrip()[:1] not in ("{", "["):
        return list(_Yaml(text, source, dialect=dialect).documents())
    try:
        return list(_json_documents(text, source))
    except json.JSONDecodeError as error:
        try:  # a flow mapping looks like JSON until it does not
            return list(_Yaml(text, source, dialect=dialect).documents())
        except InputError:
            place = (error.lineno, error.colno)
            raise _failure(f"not JSON: {error.msg}", text, source, *place) from error
    except RecursionError as error:
        raise InputError("nested too deeply", where=source) from error
    except ValueError as error:  # Python refuses to read integers of thousands of digits
        raise InputError("a number with too many digits", where=source) from error


def load_first(text: bytes, source: str) -> tuple[Document, Node] | None:
    """The first document and its nodes, whose marks say where each part was written.

    For files that hold secrets: a key given twice is no error, and no error quotes the text.
    """
    decoded = _decoded(text, source).removeprefix("\ufeff")
    return next(_Yaml(decoded, source, lenient=True, quoting=False).composed(), None)


def nodes_at(node: Node, path: Sequence[str | int]) -> Iterator[tuple[Node, Node]]:
    """The key and the value of each step of `path`, as far as the path exists."""
    yield node, node
    for step in path:
        pairs: Iterable[tuple[Node, Node]] = ()
        if node.id == "mapping" and isinstance(step, str):
            pairs = ((key, value) for key, value in node.value if key.value == step)
        elif node.id == "sequence" and isinstance(step, int):
            pairs = ((item, item) for item in node.value[step : step + 1])
        found = next(iter(pairs), None)
        if found is None:
            return
        node = found[1]
        yield found


def flattened(documents: Iterable[Document]) -> Iterator[Document]:
    """The documents, with the items in place of each `List`, `PodList` and so on."""
    for document in documents:
        value = document.value
        kind = value.get("kind") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
            inherited = {}
            if kind != "List":  # the items of a typed list may leave out what they are
                inherited = {"apiVersion": value.get("apiVersion"), "kind": kind[: -len("List")]}
            items = (
                {**inherited, **item} if isinstance(item, dict) else item for item in value["items"]
            )
            yield from flattened(replace(document, value=item) for item in items)
        else:
            yield document


def complaint(error: InputError) -> str:
    """Why a text is not YAML, without a quote of it: `yaml: line 3: did not find expected ...`."""
    line = "".join((error.where or "").split(":")[1:2])
    cause: Any = error.__cause__
    problem = getattr(cause, "problem", None)
    if not problem:
        before, _, whole = error.message.removeprefix(f"{error.where}: ").rpartition(": '")
        problem = before or whole
    return f"yaml: line {line}: {problem}"


def _decoded(data: bytes, source: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise InputError(
            f"not text: byte 0x{data[error.start]:02x} is not UTF-8",
            where=f"{source}:{line}:{column}",
            hint="save the file as UTF-8",
        ) from error


_QUOTED = 1_000_000
"""Characters of a text of which an error quotes a line: to find the line takes long."""


def _failure(message: str, text: str, source: str, line: int, column: int) -> InputError:
    lines = text.splitlines() if len(text) <= _QUOTED else []
    shown = lines[min(line, len(lines)) - 1].strip() if lines else ""
    tab = line <= len(lines) and "\t" in lines[line - 1][: column + 1]
    return InputError(
        f"{message}: {shown[:120]!r}" if shown else message,
        where=f"{source}:{line}:{column}",
        hint="indent with spaces: YAML takes no tabs there" if tab else None,
    )


# --- JSON ----------------------------------------------------------------------------------


def _json_documents(text: str, source: str) -> Iterator[Document]:
    """JSON values one after the other, as kubectl takes them."""
    start = 0

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value] # add returns None
            line = text.count("\n", 0, start) + 1
            raise InputError(f'the key "{twice}" is given twice', where=f"{source}:{line}")
        return found

    decoder = json.JSONDecoder(object_pairs_hook=unique, parse_constant=_not_a_number(source))
    while start < len(text):
        start += len(text) - start - len(text[start:].lstrip())
        if start == len(text):
            return
        value, end = decoder.raw_decode(text, start)
        if value is not None:
            yield Document(value, source, text.count("\n", 0, start) + 1)
        start = end


def _not_a_number(source: str) -> Any:
    def refuse(name: str) -> Any:
        raise InputError(f"{name} is no JSON number", where=source)

    return refuse


# --- YAML ----------------------------------------------------------------------------------

_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"
"""Our own tag, for a scalar without quotes or tag: what it is depends on its text."""

_UNTAGGED = frozenset({_PLAIN, "", "!"})
_KNOWN_TAGS = frozenset(
    {"str", "int", "float", "bool", "null", "binary", "timestamp", "seq", "map"}
)

_ALIAS = re.compile(r"\*([\w-]+)", re.ASCII)

_MAX_DEPTH = 1_000

# Beyond these a document is built to exhaust memory: aliases of aliases of aliases.
_MANY_NODES = 100_000
_ALIAS_FACTOR = 10


@cache
def _loader() -> Any:
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc] # which base depends on how PyYAML was built
        """Composes nodes; what they mean is decided here, not by PyYAML."""

        def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
            if kind is not yaml.ScalarNode:
                return ""
            return _PLAIN if implicit[0] else f"{_TAG}str"

    return Loader


def _scalars_of(dialect: Dialect) -> Callable[[str], Any]:
    """What reads scalars without quotes. ValueError is a date that does not exist."""
    if dialect is Dialect.KUBECTL:
        return plain
    from kvestigate.kube.python_scalars import scalar

    return scalar


class _Yaml:
    """One text on its way to documents."""

    def __init__(
        self,
        text: str,
        source: str,
        *,
        dialect: Dialect = Dialect.KUBECTL,
        lenient: bool = False,
        quoting: bool = True,
        most: int | None = None,
    ) -> None:
        self._dialect = dialect
        self._bare = _scalars_of(dialect)
        self._most = most
        self._text = text
        self._quoting = quoting
        self._source = source
        self._lenient = lenient
        self._repeated: list[str] = []
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._built = 0

    def documents(self) -> Iterator[Document]:
        return (document for document, _ in self.composed())

    def composed(self) -> Iterator[tuple[Document, Node]]:
        """Each document that is not empty, with its nodes."""
        import yaml

        try:
            self._check_size()
            loader = _loader()(self._text)
            try:
                while loader.check_node():
                    node = loader.get_node()
                    self._seen.clear()
                    self._built = 0
                    self._repeated = []
                    value = self._value(node)
                    if value is not None:
                        line = node.start_mark.line + 1
                        yield Document(value, self._source, line, tuple(self._repeated)), node
            finally:
                loader.dispose()
        except yaml.composer.ComposerError as error:
            error.problem = self._composing(error)
            raise self._error(error.problem, self._mark(error)) from error
        except yaml.MarkedYAMLError as error:
            raise self._error(error.problem or "not YAML", self._mark(error)) from error
        except yaml.reader.ReaderError as error:
            raise self._unreadable(error.position) from error
        except RecursionError as error:
            raise InputError("nested too deeply", where=self._source) from error

    def _check_size(self) -> None:
        """Refuses what is too much, or would overflow the stack of the composer, which is C.

        No document is nested deeper than it has brackets plus twice its longest line's columns,
        since block structure must indent, nor has it more values than characters. Only one that
        might be too deep or too much is parsed to find out.
        """
        most = len(self._text) if self._most is None else self._most
        if len(self._text) <= most and not self._may_be_deep():
            return
        loader = _loader()(self._text)
        try:
            count = depth = 0
            while loader.check_event():
                pauses.rest_if_due()
                event = loader.get_event()
                name = type(event).__name__
                depth += name.endswith("StartEvent") - name.endswith("EndEvent")
                count += 1
                if depth > _MAX_DEPTH:
                    raise self._error("nested too deeply", event.start_mark)
                if count > most + 4:  # those that begin and end the text and its document
                    raise self._error(f"more than {most} values", event.start_mark)
        finally:
            loader.dispose()

    def _may_be_deep(self) -> bool:
        longest = max(map(len, self._text.splitlines()), default=0)
        return self._text.count("[") + self._text.count("{") + 2 * longest >= _MAX_DEPTH

    def _unreadable(self, position: int) -> InputError:
        before = self._text[:position]
        line, column = before.count("\n") + 1, position - before.rfind("\n")
        return self._failure("a control character that YAML forbids", line, column)

    def _composing(self, error: Any) -> str:
        alias = _ALIAS.match(self._text, error.problem_mark.index) if error.problem_mark else None
        return f"unknown anchor '{alias[1]}' referenced" if alias else error.problem or "not YAML"

    def _mark(self, error: Any) -> Any:
        """Where it went wrong or, if that is past the last line, what was begun."""
        mark = error.problem_mark or error.context_mark
        if error.context_mark and not self._text[mark.index :].strip():
            return error.context_mark
        return mark

    def _error(self, message: str, mark: Any) -> InputError:
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        return self._failure(message, line, column)

    def _failure(self, message: str, line: int, column: int) -> InputError:
        if self._quoting:
            return _failure(message, self._text, self._source, line, column)
        return InputError(message, where=f"{self._source}:{line}:{column}")

    def _value(self, node: Node) -> Any:
        pauses.rest_if_due()
        self._check_tag(node)
        if node.id == "scalar":
            return self._scalar(node)
        if id(node) in self._open:
            raise self._error("an anchor that contains itself", node.start_mark)
        self._count(node)
        self._open.add(id(node))
        try:
            return self._sequence(node) if node.id == "sequence" else self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _check_tag(self, node: Node) -> None:
        """kubectl ignores the tags of others, PyYAML does not."""
        known = node.tag in _UNTAGGED or node.tag.removeprefix(_TAG) in _KNOWN_TAGS
        if self._dialect is Dialect.PYTHON and not known:
            shown = node.tag.replace(_TAG, "!!") if self._quoting else "a tag"
            raise self._error(f"{shown} means nothing here; remove the tag", node.start_mark)

    def _count(self, node: Node) -> None:
        self._built += 1
        self._seen.add(id(node))
        if self._built > _MANY_NODES and self._built > _ALIAS_FACTOR * len(self._seen):
            raise self._error("aliases multiply beyond reason", node.start_mark)

    def _sequence(self, node: Node) -> list[Any]:
        return [self._value(item) for item in node.value]

    def _mapping(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _PLAIN and key_node.value == "<<":
                self._merge(merged, value_node)
                continue
            key = self._key(key_node)
            if key in found and not self._lenient:
                raise self._error(f'the key "{key}" is given twice', key_node.start_mark)
            value = self._value(value_node)
            if key in found:
                line = value_node.start_mark.line + 1
                self._repeated.append(f'line {line}: key "{key}" already set in map')
            found[key] = value
        return {**merged, **found} if merged else found

    def _merge(self, merged: dict[str, Any], node: Node) -> None:
        sources = node.value if node.id == "sequence" else [node]
        for source in sources:
            value = self._value(source)
            if not isinstance(value, dict):
                raise self._error("only a mapping can be merged with <<", source.start_mark)
            for key, inner in value.items():
                merged.setdefault(key, inner)

    def _key(self, node: Node) -> str:
        key = self._scalar(node) if node.id == "scalar" else None
        if isinstance(key, bool) and self._dialect is Dialect.KUBECTL:
            return "true" if key else "false"
        if key is None:
            raise self._error("a key must be a string, number or boolean", node.start_mark)
        return key if isinstance(key, str) else str(key)

    def _scalar(self, node: Node) -> Any:
        text: str = node.value
        tag: str = node.tag
        if tag == _PLAIN:
            return self._plain(node, text)
        if tag == f"{_TAG}binary":
            try:
                return base64.b64decode(text).decode(errors="replace")
            except binascii.Error as error:
                raise self._error("!!binary without base64 data", node.start_mark) from error
        if tag in (f"{_TAG}int", f"{_TAG}float", f"{_TAG}bool", f"{_TAG}null"):
            return self._tagged(node, text, tag.removeprefix(_TAG))
        return text

    def _tagged(self, node: Node, text: str, wanted: str) -> Any:
        value = self._plain(node, text)
        types: Any = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}[wanted]
        if not isinstance(value, types) or (isinstance(value, bool) and wanted != "bool"):
            shown = repr(text) if self._quoting else "a value"
            raise self._error(f"{shown} is no !!{wanted}", node.start_mark)
        return value

    def _plain(self, node: Node, text: str) -> Any:
        try:
            return self._bare(text)
        except NotFinite as error:
            problem = "not a finite number; put it in quotes if it is text"
            raise self._error(problem, node.start_mark) from error
        except ValueError as error:
            problem = "looks like a date that does not exist; put it in quotes if it is text"
            raise self._error(problem, node.start_mark) from error
