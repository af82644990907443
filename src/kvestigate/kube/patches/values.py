"""JSON values as patches look at them: equality, and their types and texts in messages. Pure.

The texts are those of Go's `%v`, which kube-apiserver puts into its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def same(left: Any, right: Any) -> bool:
    """Whether two decoded JSON values are written alike, up to the order of object keys."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            key in right and same(value, right[key]) for key, value in left.items()
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}

OBJECT = "value of type map[string]interface {}"
OPERATIONS = "value of type []handlers.jsonPatchOp"
OPERATION = "value of type handlers.jsonPatchOp"


def mistyped(value: Any, wanted: str) -> str:
    """The sentence for a value that is none of `wanted`, one of the above."""
    return f"json: cannot unmarshal {json_type(value)} into Go {wanted}"


def json_type(value: Any) -> str:
    """What JSON calls the type of a value that is not null."""
    return _KINDS.get(type(value), "number")


MAP, LIST = "map[string]interface {}", "[]interface {}"
"""What Go calls the types of objects and lists."""


def shown(value: Any) -> str:
    """A decoded JSON value as Go prints it: `map[name:web ports:[80 443]]`."""
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def type_of(value: Any) -> str:
    """What Go calls the type of a value that was read from JSON."""
    if value is None:
        return "<nil>"
    if isinstance(value, Mapping):
        return MAP
    if isinstance(value, list):
        return LIST
    return {str: "string", bool: "bool", int: "int64"}.get(type(value), "float64")
