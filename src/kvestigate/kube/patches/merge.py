"""JSON merge patch (RFC 7386): apply one, and derive one from two documents.

Where a patch brings in an array, nulls inside that array's objects are dropped as well, unless
the array takes the place of an object: the RFC is silent there, and kube-apiserver does so.
"""

from __future__ import annotations

from typing import Any

from kvestigate.errors import BadRequest
from kvestigate.kube.patches.values import OBJECT, mistyped, same


def require_object(patch: Any) -> None:
    """Refuse what the RFC allows but an API server does not: a patch that is no object."""
    if not isinstance(patch, dict):
        raise BadRequest(f"error decoding patch: {mistyped(patch, OBJECT)}")


def apply(document: Any, patch: Any) -> Any:
    """`document` with `patch` merged into it; null in the patch deletes."""
    if not isinstance(patch, dict):
        return patch if isinstance(document, dict) else without_nulls(patch)
    if not isinstance(document, dict):
        return without_nulls(patch)
    merged = document.copy()
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply(merged.get(key), value)
    return merged


def without_nulls(value: Any) -> Any:
    """`value` less the null members of the objects in it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def diff(old: Any, new: Any) -> Any:
    """The smallest patch that makes `new` out of `old`; `{}` if they are alike.

    A merge patch cannot say that an object's member is null: one in `new` reads as its absence.
    """
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {key: None for key in old if new.get(key) is None}
    for key, value in new.items():
        if value is None:
            continue
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            change = diff(before, value)
            if change:
                patch[key] = change
        elif not same(before, value):
            patch[key] = value
    return patch
