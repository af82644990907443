"""Results for programs: JSON, YAML and NDJSON from the same values that the tables show."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kvestigate.render.yaml_text import written


def to_json(value: object) -> bytes:
    """`value` (a dataclass, a Struct, or plain data), two spaces a level, newline at the end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def to_ndjson(values: Iterable[object]) -> Iterable[bytes]:
    """One line a value, as the values come."""
    encoder = msgspec.json.Encoder()
    return (encoder.encode(value) + b"\n" for value in values)


def to_yaml(value: object) -> str:
    """`value` in the style of `kubectl -o yaml`: block style, lists flush with their key."""
    return written(msgspec.to_builtins(value))
