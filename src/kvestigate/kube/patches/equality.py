"""Equality of JSON values, where True is not 1 and 1 is not 1.0, unlike in Python."""

from __future__ import annotations

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
