"""What distinguishes two versions of an object, as sets of field paths."""

from __future__ import annotations

from typing import Any

import msgspec

from kvestigate.kube.apply.elements import named, step
from kvestigate.kube.apply.fieldset import LEAF, SELF, FieldSet, union, without
from kvestigate.kube.apply.shapes import Layout, Shape
from kvestigate.kube.facts import Ownership

_ABSENT: Any = object()
_OBJECT = (dict, type(None))


class Comparison(msgspec.Struct, frozen=True):
    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def touched(self) -> FieldSet:
        """What has a new value."""
        return union(self.modified, self.added)

    def ignoring(self, fields: FieldSet) -> Comparison:
        """But for these fields and what is under them."""
        if not fields:
            return self
        return Comparison(
            without(self.removed, fields),
            without(self.modified, fields),
            without(self.added, fields),
        )


def compare(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> Comparison:
    """The paths that lead to something else in `new`. Raises `Unkeyed`."""
    comparison = _Found()
    _compare_objects(old, new, shape, comparison)
    return Comparison(comparison.removed, comparison.modified, comparison.added)


def compare_new(new: dict[str, Any], shape: Shape) -> Comparison:
    """Compare with the object of which nothing was said."""
    return compare({"metadata": {}, **shape.empty}, new, shape)


def said_of_new(new: dict[str, Any], shape: Shape) -> FieldSet:
    """What such a comparison finds to be touched, without the detour over the rest."""
    return _said({"metadata": {}, **shape.empty}, new, shape)


def _said(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> FieldSet:
    """Made for an `old` that says next to nothing."""
    stated: FieldSet = {}
    if not old:
        if new:
            stated.update(_all_fields(new, shape))
            stated.pop(SELF, None)
        return stated
    fields, element = shape.fields, shape.element or _UNKNOWN
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if before is _ABSENT:
            stated[f"f:{name}"] = _all(value, fields.get(name, element))
        elif before != value:
            _said_again(f"f:{name}", before, value, fields.get(name, element), stated)
    return stated


def _said_again(at: str, old: Any, new: Any, shape: Shape, fields: FieldSet) -> None:
    """Of a field that there was."""
    if new and shape.is_divided and type(new) is dict and type(old) in _OBJECT:
        if inner := _said(old or {}, new, shape):
            fields[at] = inner
    elif old is None and type(new) is list and shape.is_listed:
        fields[at] = _elements(new, shape)
    else:
        comparison = _Found()
        _compare(at, old, new, shape, comparison)
        fields |= union(comparison.modified, comparison.added)


class _Found:
    """What one level of the walk has found; the steps are those from there on."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.removed: FieldSet = {}
        self.modified: FieldSet = {}
        self.added: FieldSet = {}

    def under(self, step: str, inner: _Found) -> None:
        if inner.removed:
            self.removed[step] = inner.removed
        if inner.modified:
            self.modified[step] = inner.modified
        if inner.added:
            self.added[step] = inner.added


def _compare_objects(
    old: dict[str, Any], new: dict[str, Any], shape: Shape, comparison: _Found
) -> None:
    fields, element = shape.fields, shape.element or _UNKNOWN
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if before is value:
            continue
        if before is _ABSENT:
            comparison.added[f"f:{name}"] = _all(value, fields.get(name, element))
        elif before != value:
            _compare(f"f:{name}", before, value, fields.get(name, element), comparison)
    if old.keys() <= new.keys():
        return
    for name, value in old.items():
        if name not in new:
            comparison.removed[f"f:{name}"] = _all(value, fields.get(name, element))


_UNKNOWN = Shape(Ownership.WHOLE, accepts=())


def _compare(step: str, old: Any, new: Any, shape: Shape, comparison: _Found) -> None:
    """Two values that differ and are both there; null is there."""
    if (not old and not new) or shape.ownership is Ownership.WHOLE:
        comparison.modified[step] = LEAF
        return
    kind = dict if shape.ownership is Ownership.FIELDS else list
    was, is_ = isinstance(old, kind), isinstance(new, kind)
    inner = _Found()
    if (was or old is None) and (is_ or new is None):
        if kind is dict:
            _compare_objects(old or {}, new or {}, shape, inner)
        else:
            _compare_lists(old or [], new or [], shape, inner)
        comparison.under(step, inner)
        return
    # From an object to a scalar or back: the step is another, and so is what is under it.
    comparison.modified[step] = LEAF
    if kind is dict:
        _compare_objects(old if was else {}, new if is_ else {}, shape, inner)
        comparison.under(step, inner)


def _compare_lists(old: list[Any], new: list[Any], shape: Shape, comparison: _Found) -> None:
    before, after = _by_step(old, shape), _by_step(new, shape)
    element = shape.element or _UNKNOWN
    for at in {**before, **after}:
        left, right = before.get(at, []), after.get(at, [])
        if len(left) <= 1 and len(right) <= 1:
            if not left:
                comparison.added[at] = _all(right[0], element)
            elif not right:
                comparison.removed[at] = _all(left[0], element)
            elif left[0] != right[0]:
                _compare(at, left[0], right[0], element, comparison)
        else:
            _compare_repeated(at, left, right, element, comparison)


def _compare_repeated(
    at: str, left: list[Any], right: list[Any], element: Shape, comparison: _Found
) -> None:
    """Elements that share their keys with others are owned together."""
    if len(left) > 1 and len(right) > 1:
        if left != right:
            comparison.modified[at] = LEAF
    elif len(left) > 1:
        if right:
            comparison.added[at] = _all(right[0], element)
        comparison.removed[at] = LEAF
    else:
        if left:
            comparison.removed[at] = _all(left[0], element)
        comparison.added[at] = LEAF


def _by_step(values: list[Any], shape: Shape) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for value in values:
        grouped.setdefault(step(value, shape), []).append(value)
    return grouped


def _all(value: Any, shape: Shape) -> FieldSet:
    """The value and everything in it."""
    if not value or shape.is_whole:
        return LEAF
    if isinstance(value, dict):
        return _all_fields(value, shape)
    return _all_elements(value, shape) if isinstance(value, list) else LEAF


def _all_fields(value: dict[str, Any], shape: Shape) -> FieldSet:
    """Of an object with something in it. New objects come through here, object by object."""
    if not shape.is_divided:
        return LEAF
    layout = shape.layouts.get(tuple(value)) or _layout(shape, tuple(value))
    if not layout.divided:
        return layout.leaves
    node = layout.leaves.copy()
    for name, at, child in layout.divided:
        inner = value[name]
        if not inner:
            continue
        kind = type(inner)
        if kind is dict:
            node[at] = _all_fields(inner, child)
        elif kind is list:
            node[at] = _all_elements(inner, child)
    return node


def _layout(shape: Shape, names: tuple[str, ...]) -> Layout:
    """Objects of one type are alike: most have one of a few sets of names."""
    layout = Layout(shape, names)
    if len(names) <= _WIDEST:
        if len(shape.layouts) >= _LAYOUTS:
            shape.layouts.clear()
        shape.layouts[names] = layout
    return layout


_WIDEST = 64
"""How many names an object may have whose layout is worth the memory."""
_LAYOUTS = 64
"""Layouts of one shape that are remembered."""


def _all_elements(value: list[Any], shape: Shape) -> FieldSet:
    if not shape.is_listed:
        return LEAF
    node = _elements(value, shape)
    node[SELF] = LEAF
    return node


def _elements(value: list[Any], shape: Shape) -> FieldSet:
    node: FieldSet = {}
    element, key = shape.element or _UNKNOWN, shape.key
    for inner in value:
        if key and type(inner) is dict and type(name := inner.get(key)) is str:
            at = named(key, name)  # nearly every list is keyed by one name
        else:
            at = step(inner, shape)
        if at in node:
            node[at] = LEAF
        elif type(inner) is dict and inner:
            node[at] = _all_fields(inner, element)
        else:
            node[at] = _all(inner, element)
    return node
