"""From the text of an expression to its tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from kvestigate.kube import pauses
from kvestigate.kube.cel.failures import CompileError, Issue
from kvestigate.kube.cel.values import Uint

END = "<EOF>"


class Token(msgspec.Struct, frozen=True):
    kind: str
    """`int uint float string bytes name`, an operator itself, or END."""
    text: str
    at: int
    value: Any = None


_TOKEN = re.compile(
    r"""(?P<blank>[\s]+|//[^\n]*)
    | (?P<text>(?P<prefix>[rR][bB]?|[bB][rR]?)?(?:
          \"\"\"(?P<d3>(?:\\.|[^\\])*?)\"\"\" | '''(?P<s3>(?:\\.|[^\\])*?)'''
        | "(?P<d>(?:\\.|[^\\"\n\r])*)" | '(?P<s>(?:\\.|[^\\'\n\r])*)'))
    | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    | (?P<int>0x[0-9a-fA-F]+|\d+)
    | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*|`[a-zA-Z0-9_.\-/ ]+`)
    | (?P<op>&&|\|\||<=|>=|==|!=|[<>+\-*/%!?:.,()\[\]{}])""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
# A raw text may end in a backslash that hides nothing, but hides a quote like any other.
_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[abfnrtv\\?\"'`])|x(?P<x>[0-9a-fA-F]{2})|X(?P<X>[0-9a-fA-F]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<bad>.?))",
    re.DOTALL,
)
_DIGITS = 100
_PLAIN = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def tokens(source: str) -> Iterator[Token]:
    """Read as they are asked for: most of what is refused is refused early."""
    position = 0
    while position < len(source):
        pauses.rest_if_due()
        match = _TOKEN.match(source, position)
        if match is None:
            raise CompileError(source, _unreadable(source, position))
        if match.lastgroup != "blank":
            yield _token(source, match)
        position = match.end()
    yield Token(END, END, len(source))


def _unreadable(source: str, at: int) -> list[Issue]:
    rest = source[at:].partition("\n")[0] if source[at] in "\"'" else source[at]
    return [Issue(at, f"Syntax error: token recognition error at: '{rest}'")]


def _token(source: str, match: re.Match[str]) -> Token:
    text, at = match[0], match.start()
    if match["op"]:
        return Token(text, text, at)
    if match["name"]:
        return Token("name", text, at, text.strip("`"))
    if match["float"]:
        return Token("float", text, at, float(text))
    if match["uint"]:
        return Token("uint", text, at, Uint(_whole(text[:-1])))
    if match["int"]:
        return Token("int", text, at, _whole(text))
    return _quoted(source, match)


def _whole(digits: str) -> int:
    """The number; one that is too large for all types, if there are very many digits."""
    return int(digits, 0 if "x" in digits else 10) if len(digits) <= _DIGITS else 1 << 64


def _quoted(source: str, match: re.Match[str]) -> Token:
    prefix = (match["prefix"] or "").lower()
    content = next(match[name] for name in ("d3", "s3", "d", "s") if match[name] is not None)
    is_bytes = "b" in prefix
    if "r" not in prefix:
        content = _ESCAPE.sub(lambda escape: _unescaped(source, match, escape, is_bytes), content)
    if not is_bytes:
        return Token("string", match[0], match.start(), content)
    data = b"".join(
        bytes([ord(char) - _BYTE]) if ord(char) >= _BYTE else char.encode() for char in content
    )
    return Token("bytes", match[0], match.start(), data)


_BYTE = 0x110000 - 0x100
"""Stands for a byte of a bytes literal until all of it is read: no text holds these."""


def _unescaped(source: str, token: re.Match[str], escape: re.Match[str], is_bytes: bool) -> str:
    if plain := escape["plain"]:
        return _PLAIN.get(plain, plain)
    if digits := escape["x"] or escape["X"]:
        return chr(int(digits, 16) + (_BYTE if is_bytes else 0))
    if digits := escape["octal"]:
        return chr(int(digits, 8) + (_BYTE if is_bytes else 0))
    digits = escape["u"] or escape["U"] or ""
    if digits and int(digits, 16) < _BYTE:
        return chr(int(digits, 16))
    raise CompileError(source, [Issue(token.start(), "Syntax error: invalid escape sequence")])
