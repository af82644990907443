"""What a configuration says something about: the fields that applying it makes its own."""

from __future__ import annotations

from typing import Any

from kvestigate.kube.apply.elements import step
from kvestigate.kube.apply.fieldset import LEAF, SELF, FieldSet
from kvestigate.kube.apply.shapes import DEDUCED, Shape
from kvestigate.kube.facts import Ownership


def mentioned(config: dict[str, Any], shape: Shape) -> FieldSet:
    """The paths that a configuration names. Raises `Unkeyed`.

    A field that a type names is not in the set for what is under it; an entry of a map and an
    element of a list are.
    """
    found: FieldSet = {}
    fields = shape.fields
    for name, value in config.items():
        child = fields.get(name, shape.element or DEDUCED)
        node = _inside(value, child)
        if node is None or value is None or value == {}:
            found[f"f:{name}"] = LEAF
        elif name not in fields:
            found[f"f:{name}"] = {SELF: LEAF, **node} if node else LEAF
        elif node:
            found[f"f:{name}"] = node
    return found


def _inside(value: Any, shape: Shape) -> FieldSet | None:
    """What is named under a value; None if it has one owner."""
    if shape.ownership is Ownership.FIELDS:
        return mentioned(value, shape) if isinstance(value, dict) else None
    if shape.ownership is Ownership.WHOLE or not isinstance(value, list):
        return None
    fields: FieldSet = {}
    for inner in value:
        at = step(inner, shape)
        node = None if at in fields else _inside(inner, shape.element or DEDUCED)
        fields[at] = {SELF: LEAF, **node} if node else LEAF
    return fields


def with_named(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set and every field on the way to its paths that a type names."""
    found: FieldSet = {}
    for at, node in fields.items():
        if not node:
            found[at] = node
            continue
        child, named = _next(at, shape)
        inner = with_named(node, child)
        found[at] = {SELF: LEAF, **inner} if named and SELF not in inner else inner
    return found


def _next(at: str, shape: Shape) -> tuple[Shape, bool]:
    if at.startswith("f:") and shape.ownership is Ownership.FIELDS:
        named = shape.fields.get(at[2:])
        return (named, True) if named is not None else (shape.element or DEDUCED, False)
    return shape.element or DEDUCED, False
