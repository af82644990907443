"""Objects made from others: a configuration merged into one, fields taken out of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvestigate.kube.apply.elements import step
from kvestigate.kube.apply.fieldset import SELF, FieldSet
from kvestigate.kube.apply.shapes import DEDUCED, Shape
from kvestigate.kube.facts import Ownership


def merge(live: dict[str, Any], config: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """The object with everything that a configuration says, and nothing less. Raises `Unkeyed`."""
    merged = dict(live)
    for name, value in config.items():
        if name in live:
            child = shape.fields.get(name, shape.element or DEDUCED)
            merged[name] = _merge(live[name], value, child)
        else:
            merged[name] = value
    return merged


def _merge(live: Any, config: Any, shape: Shape) -> Any:
    if shape.ownership is Ownership.FIELDS and _are(dict, live, config):
        return merge(live or {}, config or {}, shape)
    if shape.ownership in (Ownership.SET, Ownership.KEYED) and _are(list, live, config):
        return _merge_lists(live or [], config or [], shape)
    return config


def _are(kind: type, live: Any, config: Any) -> bool:
    """Both of the kind or null, and something in one of them."""
    return bool(live or config) and all(
        value is None or isinstance(value, kind) for value in (live, config)
    )


def _merge_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """In the order of the configuration, the others where they were between its elements."""
    ours = {step(value, shape): value for value in config}
    steps = [step(value, shape) for value in live]
    theirs: dict[str, Any] = {}
    for at, value in zip(steps, live, strict=True):
        # Elements that share their keys are replaced, not merged.
        theirs[at] = None if at in theirs else value
    element = shape.element or DEDUCED

    def merged(at: str) -> Any:
        return ours[at] if theirs.get(at) is None else _merge(theirs[at], ours[at], element)

    wanted = list(ours)
    shared = [at for at in wanted if at in theirs]
    result: list[Any] = []
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(wanted):
        if left < len(live) and right < len(wanted):
            at = steps[left]
            if at == wanted[right]:
                result.append(merged(at))
                done.add(at)
                left, right, shared = left + 1, right + 1, shared[1:]
                continue
            if at in ours and shared and shared[0] != at:
                left += 1  # its turn comes with the configuration
                continue
        if left < len(live):
            at = steps[left]
            if at not in ours:
                result.append(live[left])
                left += 1
                continue
            if at in done:
                left += 1
        if right < len(wanted):
            at = wanted[right]
            result.append(merged(at))
            done.add(at)
            right += 1
            if shared and shared[0] == at:
                shared = shared[1:]
    return result


def remove(value: dict[str, Any], items: FieldSet, shape: Shape) -> dict[str, Any]:
    """The object without the fields and elements that the paths lead to."""
    return _remove(value, items, shape) or {}


def _remove(value: Any, items: FieldSet, shape: Shape) -> Any:
    """Null if nothing is left: the field itself was not to be removed."""
    if shape.ownership is Ownership.FIELDS and isinstance(value, dict):
        return _remove_fields(value, items, shape)
    if shape.ownership in (Ownership.SET, Ownership.KEYED) and isinstance(value, list):
        return _remove_elements(value, items, shape)
    return None if isinstance(value, dict | list) else value


def _remove_fields(value: Mapping[str, Any], items: FieldSet, shape: Shape) -> Any:
    kept = {}
    for name, inner in value.items():
        node = items.get(f"f:{name}")
        if node is None:
            kept[name] = inner
        elif node and SELF not in node:
            kept[name] = _remove(inner, node, shape.fields.get(name, shape.element or DEDUCED))
    return kept or None


def _remove_elements(value: list[Any], items: FieldSet, shape: Shape) -> Any:
    kept = []
    for inner in value:
        node = items.get(step(inner, shape))
        if node is None:
            kept.append(inner)
        elif node and SELF not in node:
            kept.append(_remove(inner, node, shape.element or DEDUCED))
    return kept or None
