"""What tells the elements of a list apart: their step in a field path."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kvestigate.kube.apply.fieldset import value_text
from kvestigate.kube.apply.shapes import Shape

_ABSENT: Any = object()


class Unkeyed(ValueError):
    """An element that cannot be told from others."""


def step(element: Any, shape: Shape) -> str:
    """The step to an element of a list of that shape, which is a set or keyed."""
    return _keyed(element, shape) if shape.is_keyed else _value(element)


def _keyed(element: Any, shape: Shape) -> str:
    if not isinstance(element, dict):
        what = "a null element" if element is None else "non-map elements"
        raise Unkeyed(f"associative list with keys may not have {what}")
    if shape.key:
        value = element.get(shape.key)
        if type(value) is str:
            return named(shape.key, value)
    parts = []
    for key in shape.keys:
        value = element.get(key, _ABSENT)
        if value is _ABSENT:
            value = shape.defaults.get(key, _ABSENT)
        if value is not _ABSENT:
            parts.append(f'"{key}":{value_text(value)}')
    if not parts:
        keys = " ".join(f'"{key}"' for key in shape.keys)
        raise Unkeyed(
            f"associative list with keys has an element that omits all key fields [{keys}] "
            "(and doesn't have default values for any key fields)"
        )
    return f"k:{{{','.join(parts)}}}"


# The names of containers, variables and ports recur in every object.
@lru_cache(maxsize=8192)
def named(key: str, name: str) -> str:
    """The step to an element of a list that is keyed by a name."""
    return f'k:{{"{key}":{value_text(name)}}}'


def _value(element: Any) -> str:
    if isinstance(element, dict):
        raise Unkeyed("associative list without keys has an element that's a map type")
    if isinstance(element, list):
        raise Unkeyed("not supported: associative list with lists as elements")
    if element is None:
        raise Unkeyed("associative list without keys has an element that's an explicit null")
    return f"v:{value_text(element)}"
