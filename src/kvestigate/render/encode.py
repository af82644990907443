"""Results for programs: JSON and YAML from the same values that the tables show."""

from __future__ import annotations

import re

import msgspec

from kvestigate.render.yaml_text import written


def to_json(value: object) -> bytes:
    """`value` (a dataclass, a Struct or plain data), indented by two spaces, newline at the end.

    What a terminal would obey instead of showing it is escaped, which means the same in JSON.
    """
    text = msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
    return text if text.isascii() and b"\x7f" not in text else _escaped(text.decode()).encode()


# Marks of direction, of lines, and without width; the control characters behind ASCII.
_OBEYED = re.compile("[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def _escaped(text: str) -> str:
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_yaml(value: object) -> str:
    """`value` in the style of `kubectl -o yaml`: block style, lists flush with their key."""
    return written(msgspec.to_builtins(value))
