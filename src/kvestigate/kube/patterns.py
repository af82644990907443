"""Patterns of schemas are RE2's: the same as Python's but for a few corners. Pure."""

from __future__ import annotations

import re
import sys
from functools import lru_cache

_CLASSES = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:upper:]": "A-Z",
    "[:word:]": r"\w",
    "[:xdigit:]": "0-9A-Fa-f",
}


Ranges = tuple[tuple[int, int], ...]

# What RE2 knows by name and Python does not, near enough: letters and digits of any script,
# what is no character to look at, and spaces.
_LETTERS = ((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0x2AF), (0x370, 0xFFFF))
_DIGITS = ((0x30, 0x39),)
_CONTROLS = ((0x00, 0x1F), (0x7F, 0x9F))
_FORMATS = ((0xAD, 0xAD), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0xFEFF, 0xFEFF))
_PRIVATE = ((0xD800, 0xF8FF), (0xF0000, 0x10FFFF))
_SPACES = ((0x20, 0x20), (0xA0, 0xA0), (0x2000, 0x200A), (0x202F, 0x202F), (0x3000, 0x3000))
_NAMED: dict[str, Ranges] = {
    **dict.fromkeys(("L", "Lu", "Ll"), _LETTERS),
    **dict.fromkeys(("N", "Nd"), _DIGITS),
    **dict.fromkeys(("Z", "Zs"), _SPACES),
    "C": (*_CONTROLS, *_FORMATS, *_PRIVATE),
    "Cc": _CONTROLS,
    "Cf": _FORMATS,
}
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_FLAGS = re.compile(r"\(\?([ims]+)\)")


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """Raises `re.error` for what is no pattern."""
    flags = "".join(_FLAGS.findall(pattern))
    # Python wants flags at the start, and they are rarely anywhere else in RE2.
    start = f"(?{''.join(sorted(set(flags)))})" if flags else ""
    return re.compile(start + _translated(_FLAGS.sub("", pattern), "m" in flags), re.ASCII)


def _translated(pattern: str, by_line: bool) -> str:
    for name, members in _CLASSES.items():
        pattern = pattern.replace(name, members)
    made, inside, position = "", False, 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            text, position = _escape(pattern, position, inside)
            made += text
            continue
        if char == "[" and inside:
            char = r"\["
        elif char in "[]":
            inside = char == "["
        # Python's would also match before a line break at the end.
        made += r"\Z" if char == "$" and not inside and not by_line else char
        position += 1
    return made


def _escape(pattern: str, position: int, inside: bool) -> tuple[str, int]:
    """What stands for an escape in Python, and where the pattern goes on."""
    match = _PROPERTY.match(pattern, position)
    if match and (ranges := _NAMED.get(match[3] or match[4])):
        others = (match[1] == "P") is not bool(match[2])
        members = "".join(map(_written, _rest(ranges) if others else ranges))
        return (members if inside else f"[{members}]"), match.end()
    pair = pattern[position : position + 2]
    return (r"\Z" if pair == r"\z" else pair), position + 2


def _rest(ranges: Ranges) -> Ranges:
    """All characters but these."""
    bounds = [-1, *(edge for each in sorted(ranges) for edge in each), sys.maxunicode + 1]
    gaps = zip(bounds[::2], bounds[1::2], strict=True)
    return tuple((after + 1, before - 1) for after, before in gaps if before - after > 1)


def _written(span: tuple[int, int]) -> str:
    return "\\U{:08x}-\\U{:08x}".format(*span)
