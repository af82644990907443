"""Results for programs: JSON and YAML from the same values that the tables show."""

from __future__ import annotations

import msgspec

from kvestigate.render.yaml_text import written


def to_json(value: object) -> bytes:
    """`value` (a dataclass, a Struct or plain data), indented by two spaces, newline at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def to_yaml(value: object) -> str:
    """`value` in the style of `kubectl -o yaml`: block style, lists flush with their key."""
    return written(msgspec.to_builtins(value))
