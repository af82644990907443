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


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """Raises `re.error` for what is no pattern."""
    return re.compile(_translated(pattern), re.ASCII)


def _translated(pattern: str) -> str:
    for name, members in _CLASSES.items():
        pattern = pattern.replace(name, members)
    made, inside, position = "", False, 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            pair = pattern[position : position + 2]
            made += r"\Z" if pair == r"\z" else pair
            position += 2
            continue
        if char in "[]":
            inside = char == "["
        # Python's would also match before a line break at the end.
        made += r"\Z" if char == "$" and not inside else char
        position += 1
    return made
