"""Strings: the functions of the language, of its extension, and of patterns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kvestigate.kube import patterns
from kvestigate.kube.cel.failures import EvalError
from kvestigate.kube.cel.library.formatting import format_
from kvestigate.kube.cel.signatures import Library

_LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})
_BLANK = "\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)


def _matches(text: str, pattern: str) -> bool:
    with _evaluated():
        return patterns.compiled(pattern).matches(text)


def _find(text: str, pattern: str) -> str:
    with _evaluated():
        return patterns.compiled(pattern).find(text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    with _evaluated():
        return patterns.compiled(pattern).find_all(text, limit)


@contextmanager
def _evaluated() -> Iterator[None]:
    """Turns what is wrong with a pattern into an error of the evaluation."""
    try:
        yield
    except patterns.InvalidPattern as error:
        raise EvalError(f"Illegal regex: error parsing regexp: {error}") from None
    except patterns.TooCostly as error:
        raise EvalError(str(error)) from None


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise EvalError(f"index out of range: {position}")
    return text[position : position + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise EvalError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    if not 0 <= end <= len(text):
        raise EvalError(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= last <= len(text):
        raise EvalError(f"index out of range: {start if start > len(text) else last}")
    if start > last:
        raise EvalError(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]]


def _join(parts: list[Any], separator: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise EvalError("no such overload")
    return separator.join(parts)


_QUOTED = dict(
    zip('\a\b\f\n\r\t\v\\"', ("a", "b", "f", "n", "r", "t", "v", "\\", '"'), strict=True)
)


def _quote(text: str) -> str:
    return '"' + "".join(f"\\{_QUOTED[char]}" if char in _QUOTED else char for char in text) + '"'


FUNCTIONS: Library = {
    "string::contains(string) -> bool": lambda text, part: part in text,
    "string::startsWith(string) -> bool": str.startswith,
    "string::endsWith(string) -> bool": str.endswith,
    "string::matches(string) -> bool": _matches,
    "matches(string, string) -> bool": _matches,
    "string::find(string) -> string": _find,
    "string::findAll(string) -> list(string)": _find_all,
    "string::findAll(string, int) -> list(string)": _find_all,
    "string::charAt(int) -> string": _char_at,
    "string::indexOf(string) -> int": _index_of,
    "string::indexOf(string, int) -> int": _index_of,
    "string::lastIndexOf(string) -> int": _last_index_of,
    "string::lastIndexOf(string, int) -> int": _last_index_of,
    "string::lowerAscii() -> string": lambda text: text.translate(_LOWER),
    "string::upperAscii() -> string": lambda text: text.translate(_UPPER),
    "string::replace(string, string) -> string": str.replace,
    "string::replace(string, string, int) -> string": str.replace,
    "string::split(string) -> list(string)": _split,
    "string::split(string, int) -> list(string)": _split,
    "string::substring(int) -> string": _substring,
    "string::substring(int, int) -> string": _substring,
    "string::trim() -> string": lambda text: text.strip(_BLANK),
    "list(string)::join() -> string": _join,
    "list(string)::join(string) -> string": _join,
    "strings.quote(string) -> string": _quote,
    "string::format(list(dyn)) -> string": format_,
}
