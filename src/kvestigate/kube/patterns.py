"""Patterns of schemas are RE2's: the same as Python's but for a few corners. Pure."""

from __future__ import annotations

import re
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


# What RE2 knows by name and Python does not, near enough: letters and digits of any script.
_LETTERS = "A-Za-z\u00aa-\u02af\u0370-\uffff"
_NAMED = {"L": _LETTERS, "Lu": _LETTERS, "Ll": _LETTERS, "N": "0-9", "Nd": "0-9"}
_PROPERTY = re.compile(r"\\p(?:\{(\w+)\}|(\w))")
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
    if match and (members := _NAMED.get(match[1] or match[2])):
        return (members if inside else f"[{members}]"), match.end()
    pair = pattern[position : position + 2]
    return (r"\Z" if pair == r"\z" else pair), position + 2
