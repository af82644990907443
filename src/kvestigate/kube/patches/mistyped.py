"""What an API server says of a patch whose JSON is not of the shape that it must have."""

from __future__ import annotations

from typing import Any

_KINDS: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}

OBJECT = "value of type map[string]interface {}"
OPERATIONS = "value of type []handlers.jsonPatchOp"
OPERATION = "value of type handlers.jsonPatchOp"


def mistyped(value: Any, wanted: str) -> str:
    """The sentence for a value that is none of `wanted`, one of the above."""
    kind = _KINDS.get(type(value), "number")
    return f"json: cannot unmarshal {kind} into Go {wanted}"
