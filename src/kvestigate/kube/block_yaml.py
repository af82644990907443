"""The YAML that kubectl writes kubeconfigs in, read without PyYAML. Pure.

PyYAML takes longer to import than all of a kubeconfig takes to read, and every command reads one.
So mappings and lists in block style, with scalars without blanks, and JSON are read here, exactly
as `yaml_documents` reads them. Anything else is None, and the caller reads it with PyYAML: flow
style, anchors, tags, text of several lines, escapes, a key given twice, any mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from kvestigate.kube.yaml_scalars import NotFinite, plain

_LINE = re.compile(r"( *)((?:- )?)(.*)", re.ASCII)
_ENTRY = re.compile(r"([A-Za-z][A-Za-z0-9_.-]{0,62}):(?: (.*))?", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9/_.+][A-Za-z0-9/_.@:+=-]*", re.ASCII)
_QUOTED = re.compile(r"\"([ !#-\[\]-~]*)\"|'([ -&(-~]*)'", re.ASCII)
_EMPTY: dict[str, Any] = {"{}": dict, "[]": list}
_DEEPEST = 20


class _Line(NamedTuple):
    indent: int
    item: bool
    """Whether it begins an item of a list; `indent` is that of the dash."""
    text: str


class _Unusual(Exception):
    """Something that PyYAML has to read."""


def read(text: str) -> Any:
    """The value of the one document, a mapping; None if it has to be read with PyYAML."""
    try:
        if text.startswith("{"):
            found = json.loads(
                text, object_pairs_hook=_unique, parse_float=_unusual, parse_constant=_unusual
            )
            return found or None
        reader = _Reader(_lines(text))
        value = reader.mapping(0, 0)
    except (_Unusual, NotFinite, ValueError):
        return None
    return value if value and reader.at_end else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Unusual
    return found


def _unusual(text: str) -> Any:
    raise _Unusual


def _lines(text: str) -> list[_Line]:
    lines = []
    for line in text.split("\n"):
        if not line or line.lstrip(" ").startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or not match[3] or match[3].startswith(" "):
            raise _Unusual
        lines.append(_Line(len(match[1]), bool(match[2]), match[3]))
    return lines


class _Reader:
    def __init__(self, lines: Sequence[_Line]) -> None:
        self._lines = list(lines)
        self._next = 0

    @property
    def at_end(self) -> bool:
        return self._next == len(self._lines)

    def _line(self) -> _Line:
        return self._lines[self._next] if not self.at_end else _Line(-1, False, "")

    def mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if depth > _DEEPEST:
            raise _Unusual
        while (line := self._line()).indent == indent and not line.item:
            entry = _ENTRY.fullmatch(line.text)
            if entry is None or entry[1] in found or not isinstance(plain(entry[1]), str):
                raise _Unusual
            self._next += 1
            written = entry[2]
            found[entry[1]] = self._below(indent, depth) if written is None else _scalar(written)
        if not found or line.indent > indent:
            raise _Unusual
        return found

    def _below(self, indent: int, depth: int) -> Any:
        """The value of a key that has none on its own line."""
        line = self._line()
        if line.item and line.indent >= indent:
            return self._list(line.indent, depth + 1)
        if line.indent > indent:
            return self.mapping(line.indent, depth + 1)
        return None

    def _list(self, indent: int, depth: int) -> list[Any]:
        items = []
        while (line := self._line()).item and line.indent == indent:
            if _ENTRY.fullmatch(line.text):
                self._lines[self._next] = _Line(indent + 2, False, line.text)
                items.append(self.mapping(indent + 2, depth + 1))
            else:
                self._next += 1
                items.append(_scalar(line.text))
        if line.indent > indent or (line.item and line.indent >= indent):
            raise _Unusual
        return items


def _scalar(text: str) -> Any:
    if _PLAIN.fullmatch(text) and not text.endswith(":"):
        return plain(text)
    if quoted := _QUOTED.fullmatch(text):
        return quoted[1] if quoted[1] is not None else quoted[2]
    if text in _EMPTY:
        return _EMPTY[text]()
    raise _Unusual
