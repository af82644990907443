"""Plain data as YAML in the style of `kubectl -o yaml`: block style, lists flush with their key.

Written by hand because PyYAML takes a hundred times as long, which blocks a server.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from kvestigate.kube.yaml_scalars import is_text

_NO_START = frozenset("#,[]{}&*!|>'\"%@` ")
"""Characters that a scalar without quotes cannot start with."""
_SIMPLE = re.compile(r"[A-Za-z/_][A-Za-z0-9/_.@-]*")
"""Text that needs no quotes unless it is a keyword such as `true`."""
_LOOKS_DATED = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt \t])"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:[.][0-9_]*)?$"
)
"""Text that YAML 1.1 reads as a date or a base-60 number."""
_ESCAPED = re.compile(
    r'["\\]|[^ -~\u00a1-\ud7ff\ue000-\ufefe\uff00-\ufffd]'
    r"|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_ESCAPES = {
    "\0": "0",
    "\a": "a",
    "\b": "b",
    "\t": "t",
    "\n": "n",
    "\v": "v",
    "\f": "f",
    "\r": "r",
    "\x1b": "e",
    '"': '"',
    "\\": "\\",
    "\x85": "N",
    "\xa0": "_",
    "\u2028": "L",
    "\u2029": "P",
}
_LONGEST_KEY = 120
"""The longest key that is on one line with its value."""
_STEP = "  "
_ENTRIES, _ITEMS = 100, 4
"""Entries of a mapping and items of a list per portion."""


def written(value: Any) -> str:
    """Mappings with keys that are text, sequences, text, numbers, booleans and None."""
    return "".join(portions(value))


def portions(value: Any) -> Iterator[str]:
    """The same text in portions, so that a server can do other work between them."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _entry_in_portions(name, inner)
    elif isinstance(value, list | tuple) and value:
        yield from _items_in_portions(value)
    else:
        yield f"{_leaf(value, '')}\n"


def _entry_in_portions(name: Any, value: Any) -> Iterator[str]:
    key = _key(name)
    if key is not None and isinstance(value, dict) and len(value) > _ENTRIES:
        yield f"{key}:\n"
        entries = iter(value.items())
        while portion := dict(islice(entries, _ENTRIES)):
            parts: list[str] = []
            _mapping(parts, portion, _STEP, _STEP)
            yield "".join(parts)
    elif key is not None and isinstance(value, list | tuple) and len(value) > _ITEMS:
        yield f"{key}:\n"
        yield from _items_in_portions(value)
    else:
        parts = []
        _mapping(parts, {name: value}, "", "")
        yield "".join(parts)


def _items_in_portions(items: Sequence[Any]) -> Iterator[str]:
    for start in range(0, len(items), _ITEMS):
        parts: list[str] = []
        _sequence(parts, items[start : start + _ITEMS], "", "")
        yield "".join(parts)


# `lead` is what stands before the first line: the indent, or that and the marks of the lists that
# begin there, too.


def _mapping(parts: list[str], mapping: Mapping[Any, Any], indent: str, lead: str) -> None:
    for name, value in mapping.items():
        key = _key(name)
        if key is None:
            parts.append(f"{lead}? {_leaf(name, indent)}\n")
            _item(parts, value, indent, f"{indent}: ")
        elif isinstance(value, dict) and value:
            parts.append(f"{lead}{key}:\n")
            _mapping(parts, value, indent + _STEP, indent + _STEP)
        elif isinstance(value, list | tuple) and value:
            parts.append(f"{lead}{key}:\n")
            _sequence(parts, value, indent, indent)
        else:
            parts.append(f"{lead}{key}: {_leaf(value, indent)}\n")
        lead = indent


def _sequence(parts: list[str], items: Sequence[Any], indent: str, lead: str) -> None:
    for item in items:
        _item(parts, item, indent, f"{lead}- ")
        lead = indent


def _item(parts: list[str], value: Any, indent: str, lead: str) -> None:
    if isinstance(value, dict) and value:
        _mapping(parts, value, indent + _STEP, lead)
    elif isinstance(value, list | tuple) and value:
        _sequence(parts, value, indent + _STEP, lead)
    else:
        parts.append(f"{lead}{_leaf(value, indent)}\n")


def _key(name: Any) -> str | None:
    """None if the key needs the explicit `? key` form."""
    if not isinstance(name, str):
        return _leaf(name, "")
    if not 0 < len(name) < _LONGEST_KEY or "\n" in name:
        return None
    return _text(name, "")


def _leaf(value: Any, indent: str) -> str:
    if isinstance(value, str):
        return _text(value, indent)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, dict):
        return "{}"
    return "[]" if isinstance(value, list | tuple) else str(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    shown = repr(value)
    # Without a point, YAML reads it as text.
    return shown if "." in shown else shown.replace("e", ".0e", 1)


def _text(text: str, indent: str) -> str:
    if _SIMPLE.fullmatch(text) and is_text(text):
        return text
    if text.isprintable():
        if _is_plain(text) and is_text(text) and not _LOOKS_DATED.match(text):
            return text
        return "'" + text.replace("'", "''") + "'"
    # Other line ends and control characters need escapes.
    if not text.replace("\n", "").isprintable() or " \n" in text or text.endswith(" "):
        return '"' + _ESCAPED.sub(_escape, text) + '"'
    return _block(text, indent)


def _is_plain(text: str) -> bool:
    """Whether the text is one scalar without quotes."""
    if text in ("", "=", "<<") or text[0] in _NO_START or text[-1] in " :":
        return False
    if text[0] in "?-" and text[1:2] in ("", " "):
        return False
    return ": " not in text and " #" not in text and not text.startswith(("---", "..."))


def _block(text: str, indent: str) -> str:
    """A literal block (`|`)."""
    hint = str(len(_STEP)) if text[0] in " \n" else ""
    ending = "" if text.endswith("\n") else "-"
    if text == "\n" or text.endswith("\n\n"):
        ending = "+"
    indent += _STEP
    lines = [indent + line if line else "" for line in text.removesuffix("\n").split("\n")]
    return "\n".join([f"|{hint}{ending}", *lines])


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short, number = _ESCAPES.get(character), ord(character)
    if short is not None:
        return f"\\{short}"
    if number <= 0xFF:
        return f"\\x{number:02X}"
    return f"\\u{number:04X}" if number <= 0xFFFF else f"\\U{number:08X}"
